//! What of a tree is not sent: patterns, as shells and rsync(1) have them.
//!
//! `*` stands for any characters but `/`, `**` for those too, `?` for one but `/`; all others stand for themselves. A
//! pattern with a `/` before its end is compared with the whole path, as the receiver would see it; another with
//! the last part alone, at any depth. One that ends in `/` is meant for folders. What an excluded folder holds is
//! excluded too, since nothing enters it. Left out: `[a-z]`, `\`, and patterns that include again.

use std::str::FromStr;

/// Patterns of what is left out.
#[derive(Clone, Debug, Default)]
pub struct Exclude(Vec<Pattern>);

/// One of them.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Vec<u8>,
    folders: bool,
    whole: bool,
}

/// Why something is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern is empty; write for example '*.tmp', 'cache/' or 'photos/raw/*'")]
pub struct Empty;

impl FromStr for Pattern {
    type Err = Empty;

    fn from_str(text: &str) -> Result<Self, Empty> {
        let folders = text.ends_with('/');
        let text = text.trim_end_matches('/');
        let whole = text.contains('/');
        let text = text.trim_start_matches('/');
        if text.is_empty() {
            return Err(Empty);
        }
        Ok(Self { text: text.as_bytes().to_vec(), folders, whole })
    }
}

impl FromIterator<Pattern> for Exclude {
    fn from_iter<I: IntoIterator<Item = Pattern>>(patterns: I) -> Self {
        Self(patterns.into_iter().collect())
    }
}

impl Exclude {
    /// Whether a file or folder is left out that would have this path at the receiver.
    pub fn has(&self, path: &[u8], is_folder: impl Fn() -> bool) -> bool {
        let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        self.0.iter().any(|pattern| {
            fits(&pattern.text, if pattern.whole { path } else { last })
                && (!pattern.folders || is_folder())
        })
    }
}

/// Whether a name is one that the pattern means. After a mismatch the last star takes one byte more, so the time is
/// at most the product of both lengths.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut byte) = (0, 0);
    // Where to go on after the last `*`, and after the last `**`: the pattern, and how much of the name it took.
    let mut stars: [Option<(usize, usize)>; 2] = [None; 2];
    loop {
        let rest = &pattern[at..];
        if rest.starts_with(b"**") {
            at += 2;
            stars = [None, Some((at, byte))];
            continue;
        }
        if rest.starts_with(b"*") {
            at += 1;
            stars[0] = Some((at, byte));
            continue;
        }
        match (rest.first(), name.get(byte)) {
            (None, None) => return true,
            (Some(&wanted), Some(&found))
                if wanted == found || (wanted == b'?' && found != b'/') =>
            {
                at += 1;
                byte += 1;
                continue;
            }
            _ => {}
        }
        // One byte more for the star that may take it.
        let narrow = stars[0].filter(|&(_, taken)| name.get(taken).is_some_and(|&it| it != b'/'));
        if let Some((after, taken)) = narrow {
            stars[0] = Some((after, taken + 1));
            (at, byte) = (after, taken + 1);
        } else if let Some((after, taken)) = stars[1].filter(|&(_, taken)| taken < name.len()) {
            stars = [None, Some((after, taken + 1))];
            (at, byte) = (after, taken + 1);
        } else {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excluded(patterns: &[&str], path: &str, folder: bool) -> bool {
        let patterns = patterns.iter().map(|text| text.parse::<Pattern>().expect("a pattern"));
        patterns.collect::<Exclude>().has(path.as_bytes(), || folder)
    }

    #[test]
    fn patterns_mean_what_they_do_for_shells_and_rsync() {
        for (pattern, path, folder, left_out) in [
            ("*.tmp", "top/a.tmp", false, true),
            ("*.tmp", "top/sub/deep/.tmp", false, true),
            ("*.tmp", "top/a.tmpx", false, false),
            ("cache/", "top/cache", true, true),
            ("cache/", "top/cache", false, false),
            ("cache", "top/cache", false, true),
            ("top/*/raw", "top/a/raw", true, true),
            ("top/*/raw", "top/a/b/raw", true, false),
            ("top/**/raw", "top/a/b/raw", true, true),
            ("/top", "top", true, true),
            ("/raw", "top/raw", true, false),
            ("**/x*y**z", "a/b/x1y/2/z", false, true),
            ("**/x*y**z", "a/b/x/1y/2/z", false, false),
            ("a?c", "top/abc", false, true),
            ("t?p/x", "t/p/x", false, false),
            ("*", "anything", false, true),
            ("a*b*c", "aXbXbc", false, true),
            ("a*b*c", "aXbXb", false, false),
        ] {
            assert_eq!(excluded(&[pattern], path, folder), left_out, "{pattern} {path}");
        }
        assert!(excluded(&["x", "y"], "top/y", false) && !excluded(&[], "top/y", false));
        assert_eq!("/".parse::<Pattern>().err(), Some(Empty));
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_longer_than_both_lengths_multiplied() {
        let pattern = "*a".repeat(60) + "**b";
        assert!(!excluded(&[&pattern], &"a".repeat(4000), false));
    }
}
