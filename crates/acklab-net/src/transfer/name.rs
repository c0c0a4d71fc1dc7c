//! Names that a peer may give: relative, and nowhere a way out.
//!
//! A path is parts joined by `/`, at most 4096 bytes, each part at most 255 (Linux's PATH_MAX and
//! NAME_MAX). The parts are bytes and need not be UTF-8. Refused are the empty part, `.` and `..`,
//! NUL, and a first part that is the folder of unfinished files.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// The folder in DIR that holds what is not finished.
pub const PART_FOLDER: &str = ".acklab-part";
/// Longest path, bytes.
pub const PATH_MAX: usize = 4096;
/// Longest part of a path, bytes.
pub const PART_MAX: usize = 255;

/// A path that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Vec<u8>);

impl Name {
    /// The reason, if a path may not be used.
    pub fn new(path: &[u8]) -> Result<Self, &'static str> {
        if path.len() > PATH_MAX {
            return Err("the path is longer than 4096 bytes");
        }
        for (index, part) in path.split(|&byte| byte == b'/').enumerate() {
            match part {
                b"" => return Err("the path is absolute or has an empty part"),
                b"." | b".." => return Err("the path has a part . or .."),
                _ if part.len() > PART_MAX => return Err("a name is longer than 255 bytes"),
                _ if part.contains(&0) => return Err("the path has a zero byte"),
                _ if index == 0 && part.eq_ignore_ascii_case(PART_FOLDER.as_bytes()) => {
                    return Err("the path leads into the folder of unfinished files");
                }
                _ => {}
            }
        }
        Ok(Self(path.to_vec()))
    }

    /// The path's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The parts before the last, and the last.
    pub fn split(&self) -> (impl Iterator<Item = &OsStr>, &OsStr) {
        let mut parts: Vec<&OsStr> =
            self.0.split(|&byte| byte == b'/').map(OsStr::from_bytes).collect();
        let last = parts.pop().unwrap_or_default();
        (parts.into_iter(), last)
    }

    /// Whether a symbolic link of this name to `target` stays within the folder, wherever other such links lead:
    /// `..` may stand at its start alone, and no more often than there are folders above.
    pub fn keeps_within(&self, target: &[u8]) -> bool {
        let mut parts = target.split(|&byte| byte == b'/').peekable();
        let above = self.split().0.count();
        let mut climbs = 0;
        while parts.next_if(|part| matches!(*part, b".." | b"." | b"")).is_some_and(|part| {
            climbs += usize::from(part == b"..");
            true
        }) {}
        !target.starts_with(b"/") && climbs <= above && parts.all(|part| part != b"..")
    }

    /// The path before the last `/`; empty in DIR itself.
    pub fn parent(&self) -> &[u8] {
        let at = self.0.iter().rposition(|&byte| byte == b'/');
        &self.0[..at.unwrap_or(0)]
    }
}

/// Whether a character changes how others are shown (Unicode's bidirectional controls and separators).
fn steers(character: char) -> bool {
    let turns = ['\u{200e}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    character.is_control()
        || character == '\u{61c}'
        || turns.iter().any(|range| range.contains(&character))
}

/// A path for people to read: control characters, those that turn the direction of writing or break a line, and what
/// is not UTF-8 stand as escapes, so that a name neither steers a terminal nor looks like another.
pub fn shown(path: &[u8]) -> String {
    let mut text = String::new();
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            if steers(character) {
                let _ = write!(text, "{}", character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_as_an_escape() {
        let cases: [(&[u8], &str); 4] = [
            (b"a\x1b[31mb\n", "a\\u{1b}[31mb\\n"),
            ("photo\u{202e}gpj.sh".as_bytes(), "photo\\u{202e}gpj.sh"),
            ("\u{2066}a\u{2028}b\u{200f}".as_bytes(), "\\u{2066}a\\u{2028}b\\u{200f}"),
            ("été \u{4e2d}\u{202f}x".as_bytes(), "été \u{4e2d}\u{202f}x"),
        ];
        for (path, expected) in cases {
            assert_eq!(shown(path), expected);
        }
    }

    #[test]
    fn names_that_lead_out_or_confuse_are_refused() {
        let long_part = "a".repeat(256);
        let long_path = "ab/".repeat(1400) + "c";
        let hostile: &[&[u8]] = &[
            b"",
            b"/",
            b"/etc/passwd",
            b"..",
            b"../x",
            b"a/../../x",
            b"a/..",
            b".",
            b"./a",
            b"a/./b",
            b"a//b",
            b"a/",
            b"a\0b",
            b".acklab-part",
            b".acklab-part/x",
            b".ACKLAB-part/x",
            long_part.as_bytes(),
            long_path.as_bytes(),
        ];
        for path in hostile {
            assert!(Name::new(path).is_err(), "{}", shown(path));
        }
    }

    #[test]
    fn other_names_are_taken_as_they_are() {
        for path in
            [&b"a"[..], b"...", b"a/b/c", b"..a", b"a/.acklab-part", b"\xff\xfe", b" ", b"-rf"]
        {
            assert_eq!(Name::new(path).map(|name| name.as_bytes().to_vec()), Ok(path.to_vec()));
        }
        let name = Name::new(b"a/b/c").expect("a good name");
        let (parents, last) = name.split();
        assert_eq!((parents.count(), last), (2, OsStr::new("c")));
        assert_eq!(name.parent(), b"a/b");
    }

    #[test]
    fn links_stay_within_the_folder_wherever_others_lead() {
        let name = Name::new(b"a/b/link").expect("a good name");
        for target in ["x", "../x", "../../x", "./../../b/c", "..", ".", "x/./y", "..x"] {
            assert!(name.keeps_within(target.as_bytes()), "{target}");
        }
        // What `x` is may be a link to a folder further up.
        for target in ["/etc", "../../../x", "x/..", "x/../y", "./.././../..", "/", "//x"] {
            assert!(!name.keeps_within(target.as_bytes()), "{target}");
        }
    }

    #[test]
    fn a_name_cannot_steer_a_terminal() {
        assert_eq!(shown(b"a\x1b[2J\xff\xc3\xa4"), "a\\u{1b}[2J\\xffä");
    }
}
