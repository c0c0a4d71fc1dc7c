//! What nstat(8) shows, and the filters that look at it: grep, awk that prints a field, wc.

use std::fmt::Write as _;

use acklab_host::mib::Mib;
use regex_lite::{Regex, RegexBuilder};

/// Counters, in their order: their values, and those that nstat showed last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// Names and values of now.
    pub(crate) now: Vec<(&'static str, u64)>,
    before: Vec<u64>,
}

/// Runs a pipe that begins with nstat: what it prints, and whether its last command succeeds. An error: which command
/// is not understood.
pub(super) fn pipe(shown: &mut Shown, stages: &[Vec<String>]) -> Result<(String, bool), String> {
    let mut done = (String::new(), true);
    for (index, words) in stages.iter().enumerate() {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let whole = || format!("the command {:?} behind nstat", words.join(" "));
        done = match words.split_first() {
            Some((_, args)) if index == 0 => (nstat(shown, args)?, true),
            Some((&("grep" | "egrep" | "fgrep"), _)) => grep(&done.0, &words)?,
            Some((&"awk", args)) => (awk(&done.0, args).ok_or_else(whole)?, true),
            Some((&"wc", &["-l"])) => (format!("{}\n", done.0.lines().count()), true),
            Some((&("cat" | "tee"), [] | [_])) => done,
            _ => return Err(whole()),
        };
    }
    Ok(done)
}

fn nstat(shown: &mut Shown, args: &[&str]) -> Result<String, String> {
    let (mut absolute, mut silent, mut keeps, mut zeros) = (false, false, false, false);
    let mut patterns = Vec::new();
    for &arg in args {
        let Some(flags) = arg.strip_prefix('-') else {
            known(arg)?;
            patterns.push(arg);
            continue;
        };
        match flags {
            "-zeros" => zeros = true,
            "-ignore" => absolute = true,
            "-noupdate" => keeps = true,
            "-nooutput" => silent = true,
            "-reset" => shown.before.clear(),
            _ => {
                for flag in flags.chars() {
                    match flag {
                        'a' => absolute = true,
                        'n' => silent = true,
                        's' => keeps = true,
                        'z' => zeros = true,
                        'r' => shown.before.clear(),
                        _ => return Err(format!("nstat's option {arg}")),
                    }
                }
            }
        }
    }
    let mut text = String::from("#kernel\n");
    for (index, &(name, value)) in shown.now.iter().enumerate() {
        let before = if absolute { 0 } else { shown.before.get(index).copied().unwrap_or(0) };
        let value = value - before.min(value);
        let asked = patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, name));
        if asked && (zeros || value > 0) {
            let _ = writeln!(text, "{name:<32}{value:<16} 0.0");
        }
    }
    if !keeps {
        shown.before = shown.now.iter().map(|&(_, value)| value).collect();
    }
    Ok(if silent { String::new() } else { text })
}

/// A shell's pattern with `*`, at the end or at both.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    for (index, part) in pattern.split('*').enumerate() {
        let Some(at) = rest.find(part).filter(|&at| at == 0 || index > 0) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || pattern.ends_with('*')
}

/// Names in a pattern have to be of counters that are counted: one that is not there would look like a zero.
fn known(pattern: &str) -> Result<(), String> {
    let names = pattern.split(|c: char| !c.is_ascii_alphanumeric());
    for name in names.filter(|name| name.len() > 1 && name.starts_with(char::is_uppercase)) {
        if !Mib::ALL.iter().any(|mib| mib.name().contains(name)) {
            return Err(format!("the counter {name}"));
        }
    }
    Ok(())
}

fn grep(text: &str, words: &[&str]) -> Result<(String, bool), String> {
    let (mut quiet, mut counts, mut inverted, mut alone) = (false, false, false, false);
    let (mut whole_words, mut extended, mut plain) =
        (false, words[0] == "egrep", words[0] == "fgrep");
    let (mut folds, mut patterns) = (false, Vec::new());
    let mut args = words[1..].iter();
    while let Some(&arg) = args.next() {
        let Some(flags) = arg.strip_prefix('-').filter(|_| patterns.is_empty()) else {
            patterns.push(arg);
            continue;
        };
        for flag in flags.chars() {
            match flag {
                'q' | 's' => quiet |= flag == 'q',
                'c' => counts = true,
                'v' => inverted = true,
                'w' => whole_words = true,
                'o' => alone = true,
                'i' => folds = true,
                'E' | 'P' => extended = true,
                'F' => plain = true,
                'e' => patterns.extend(args.next()),
                _ => return Err(format!("grep's option {arg}")),
            }
        }
    }
    let [pattern] = patterns.as_slice() else {
        return Err(format!("{:?} with files or several patterns", words.join(" ")));
    };
    known(pattern)?;
    let pattern = if plain {
        regex_lite::escape(pattern)
    } else if extended {
        (*pattern).to_owned()
    } else {
        basic(pattern)
    };
    let pattern = if whole_words { format!(r"\b(?:{pattern})\b") } else { pattern };
    let regex: Regex = RegexBuilder::new(&pattern)
        .case_insensitive(folds)
        .build()
        .map_err(|error| format!("grep's pattern {pattern:?}: {error}"))?;
    let lines: Vec<&str> = text.lines().filter(|line| regex.is_match(line) != inverted).collect();
    let found = !lines.is_empty();
    let text = if quiet {
        String::new()
    } else if counts {
        format!("{}\n", lines.len())
    } else if alone && !inverted {
        let each = lines.iter().flat_map(|line| regex.find_iter(line));
        each.flat_map(|part| [part.as_str(), "\n"]).collect()
    } else {
        lines.into_iter().flat_map(|line| [line, "\n"]).collect()
    };
    Ok((text, found))
}

/// A basic regular expression of POSIX as an extended one: `+ ? | ( ) { }` change places with their escapes.
fn basic(pattern: &str) -> String {
    let mut text = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next) if "+?|(){}".contains(next) => text.push(next),
                Some(next) => text.extend(['\\', next]),
                None => text.push_str("\\\\"),
            },
            c if "+?|(){}".contains(c) => text.extend(['\\', c]),
            c => text.push(c),
        }
    }
    text
}

/// `awk '{print $2}'`, also behind a pattern between slashes.
fn awk(text: &str, args: &[&str]) -> Option<String> {
    let [program] = args else { return None };
    let program = program.trim();
    let (pattern, action) = match program.strip_prefix('/') {
        Some(rest) => {
            let (pattern, action) = rest.split_once('/')?;
            known(pattern).ok()?;
            (Some(Regex::new(pattern).ok()?), action)
        }
        None => (None, program),
    };
    let field = action.trim().strip_prefix('{')?.strip_suffix('}')?.trim().trim_end_matches(';');
    let field: usize = field.strip_prefix("print")?.trim().strip_prefix('$')?.parse().ok()?;
    let lines = text.lines().filter(|line| pattern.as_ref().is_none_or(|it| it.is_match(line)));
    let part = |line: &str| match field {
        0 => line.to_owned(),
        _ => line.split_whitespace().nth(field - 1).unwrap_or("").to_owned(),
    };
    Some(lines.map(|line| part(line) + "\n").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piped(shown: &mut Shown, stages: &str) -> Result<(String, bool), String> {
        let words = |stage: &str| stage.split_whitespace().map(|w| w.replace('_', " ")).collect();
        pipe(shown, &stages.split(" | ").map(words).collect::<Vec<_>>())
    }

    fn counted() -> Shown {
        let now = Mib::ALL.map(|mib| (mib.name(), mib as u64)).to_vec();
        Shown { now, ..Shown::default() }
    }

    #[test]
    fn nstat_shows_what_was_added_since_it_ran_last() {
        let mut shown = counted();
        let (text, _) = piped(&mut shown, "nstat").unwrap();
        assert!(text.starts_with("#kernel\nTcpPassiveOpens "), "zeros are left out: {text}");
        assert_eq!(piped(&mut shown, "nstat").unwrap().0, "#kernel\n");
        shown.now[2].1 += 5;
        let added = "#kernel\nTcpAttemptFails                 5                0.0\n";
        assert_eq!(piped(&mut shown, "nstat -s Tcp*Fails").unwrap().0, added);
        assert_eq!(piped(&mut shown, "nstat -n").unwrap().0, "");
        assert_eq!(
            piped(&mut shown, "nstat -az TcpAttemptFails | awk {print_$2}").unwrap().0,
            "\n7\n"
        );
    }

    #[test]
    fn grep_selects_lines_as_posix_has_it() {
        let mut shown = counted();
        for (filter, found) in [
            ("grep -q TcpInSegs", true),
            ("grep -q ^TcpInSegs_*4_", true),
            ("grep -q TcpInSegs_+4", false),
            ("grep -qE TcpInSegs_+4", true),
            (r"grep -q TcpInSegs_\+4", true),
            ("grep -qw TcpIn", false),
            ("grep -F TcpInSegs | grep -q 0.0$", true),
            ("grep -v kernel | grep -q kernel", false),
        ] {
            let done = piped(&mut shown, &format!("nstat -a | {filter}"));
            assert_eq!(done.map(|(_, done)| done), Ok(found), "{filter}");
        }
        for unknown in ["nstat | grep TcpExtTCPHPAcks", "nstat | sed s/a/b/", "nstat IpInReceives"]
        {
            assert!(piped(&mut shown, unknown).is_err(), "{unknown}");
        }
    }
}
