//! Lists of commands, one after another: what of them runs, and what words stand for.

use std::collections::BTreeMap;

use super::syntax::{Token, dollar_length, tokens};
use super::{Slept, Surroundings, commands, shown};
use crate::expression;

/// More commands no script about TCP has.
const STEPS: usize = 10_000;
/// Scripts that run each other, and conditions in conditions.
const DEEPEST: usize = 12;

/// Longer words no command about TCP has.
const LONGEST: usize = 1 << 16;

/// A command with its words and where its output goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Simple {
    /// Words, quotes removed.
    pub(super) words: Vec<String>,
    /// `>` or `>>` of standard output.
    pub(super) output: Option<String>,
}

/// A shell without processes.
pub(super) struct Machine<'a, 'b> {
    pub(super) around: &'b mut Surroundings<'a>,
    variables: BTreeMap<String, String>,
    slept: Slept,
    steps: usize,
    pub(super) depth: usize,
    /// `exit` was reached.
    over: bool,
    /// Commands that are not understood fail, and the script goes on.
    pub(super) lenient: bool,
}

struct Place<'t> {
    tokens: &'t [Token],
    at: usize,
}

impl Place<'_> {
    fn word(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(found);
        found
    }

    fn skip_ends(&mut self) {
        while self.take_sign(";") || self.take_sign("&") {}
    }

    fn want(&mut self, word: &str) -> Result<(), String> {
        self.skip_ends();
        if self.word() == Some(word) {
            self.at += 1;
            return Ok(());
        }
        Err(format!("a shell's condition or loop without {word:?}"))
    }
}

impl<'a, 'b> Machine<'a, 'b> {
    pub(super) const fn new(around: &'b mut Surroundings<'a>) -> Self {
        Self {
            around,
            variables: BTreeMap::new(),
            slept: 0,
            steps: 0,
            depth: 0,
            over: false,
            lenient: false,
        }
    }

    /// How long commands slept.
    pub(super) const fn time(&self) -> Slept {
        self.slept
    }

    /// A command sleeps.
    pub(super) const fn sleep(&mut self, time: Slept) {
        self.slept += time;
    }

    /// `exit`: nothing more runs.
    pub(super) const fn end(&mut self) {
        self.over = true;
    }

    /// Runs a text; returns whether its last command succeeded.
    pub(super) fn text(&mut self, text: &str) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("scripts that run each other".to_owned());
        }
        let all = tokens(text)?;
        let mut place = Place { tokens: &all, at: 0 };
        let done = self.list(&mut place, &[], true)?;
        if place.at < all.len() && !self.over {
            return Err(format!("{:?} in a shell's command", all[place.at]));
        }
        self.over = false;
        self.depth -= 1;
        Ok(done)
    }

    /// Commands up to one of `ends`; `live`: they run.
    fn list(&mut self, place: &mut Place<'_>, ends: &[&str], live: bool) -> Result<bool, String> {
        let mut last = true;
        loop {
            place.skip_ends();
            if place.at >= place.tokens.len() || place.word().is_some_and(|w| ends.contains(&w)) {
                return Ok(last);
            }
            if matches!(place.tokens[place.at], Token::Sign(_)) {
                return Ok(last);
            }
            last = self.chain(place, live && !self.over)?;
        }
    }

    /// Commands joined by `&&` and `||`.
    fn chain(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
        let mut done = self.pipe(place, live)?;
        loop {
            let both = place.take_sign("&&");
            if !both && !place.take_sign("||") {
                return Ok(done);
            }
            while place.take_sign(";") {}
            let runs = done == both;
            let next = self.pipe(place, live && runs)?;
            done = if runs { next } else { done };
        }
    }

    /// Commands joined by `|`, or one that holds others.
    fn pipe(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
        let negated = place.word() == Some("!");
        place.at += usize::from(negated);
        let mut stages = Vec::new();
        loop {
            self.steps += 1;
            if self.steps > STEPS {
                return Err("a shell's loop that does not end".to_owned());
            }
            let word = place.word().unwrap_or("").to_owned();
            let compound = match word.as_str() {
                "if" => Some(self.condition(place, live)),
                "for" => Some(self.repetition(place, live)),
                "while" | "until" | "case" | "function" | "select" => {
                    return Err(format!("the shell's {word:?}"));
                }
                "{" => Some(self.group(place, live)),
                "" if place.take_sign("(") => Some(self.group(place, live)),
                _ => None,
            };
            if let Some(done) = compound {
                let done = done?;
                while let Some(Token::Redirect(_)) = place.tokens.get(place.at) {
                    place.at += 2;
                }
                return Ok(done != negated);
            }
            stages.push(self.simple(place, live)?);
            if !place.take_sign("|") {
                break;
            }
            while place.take_sign(";") {}
        }
        if !live {
            return Ok(true);
        }
        match self.run_stages(stages) {
            Err(_) if self.lenient => Ok(negated),
            done => done.map(|done| done != negated),
        }
    }

    /// `{ … }` or, where its opening is taken, `( … )`.
    fn group(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("groups of commands within each other".to_owned());
        }
        let braces = place.word() == Some("{");
        place.at += usize::from(braces);
        let done = self.list(place, if braces { &["}"] } else { &[] }, live)?;
        if braces {
            place.want("}")?;
        } else if !place.take_sign(")") {
            return Err("( without its end".to_owned());
        }
        self.depth -= 1;
        Ok(done)
    }

    /// A pipe's commands: one whose output another looks at is understood only where that one writes it to a file.
    fn run_stages(&mut self, mut stages: Vec<Simple>) -> Result<bool, String> {
        if let [first, second] = stages.as_slice() {
            let words: Vec<&str> = second.words.iter().map(String::as_str).collect();
            let target = match words.as_slice() {
                ["tee", rest @ ..] | ["sudo", "tee", rest @ ..] => {
                    rest.iter().find(|w| !w.starts_with('-')).map(|&w| w.to_owned())
                }
                _ => None,
            };
            if target.is_some() {
                let first = Simple { output: target, ..first.clone() };
                return commands::run(self, &first);
            }
        }
        if stages[0].words.first().is_some_and(|word| word == "nstat") {
            let stages: Vec<Vec<String>> = stages.into_iter().map(|stage| stage.words).collect();
            return shown::pipe(self.around.shown, &stages).map(|(_, done)| done);
        }
        if stages.len() > 1 {
            let all: Vec<String> = stages.iter().map(|s| s.words.join(" ")).collect();
            let harmless = ["true", "cat", "tee"];
            let last = stages.last().and_then(|s| s.words.first()).map_or("", String::as_str);
            if !harmless.contains(&last) {
                return Err(format!("the command {:?}", all.join(" | ")));
            }
        }
        let first = stages.swap_remove(0);
        if first.words.is_empty() {
            return Ok(true);
        }
        commands::run(self, &first)
    }

    /// `if`, whose branch is chosen; the others are read and do not run.
    fn condition(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("conditions within each other".to_owned());
        }
        place.at += 1;
        let (mut open, mut last) = (live, true);
        loop {
            let holds = self.list(place, &["then"], open)?;
            place.want("then")?;
            let chosen = open && holds;
            let done = self.list(place, &["elif", "else", "fi"], chosen)?;
            last = if chosen { done } else { last };
            open &= !chosen;
            match place.word() {
                Some("elif") => place.at += 1,
                Some("else") => {
                    place.at += 1;
                    let done = self.list(place, &["fi"], open)?;
                    last = if open { done } else { last };
                    break;
                }
                _ => break,
            }
        }
        place.want("fi")?;
        self.depth -= 1;
        Ok(last)
    }

    /// `for NAME in WORDS; do … done`.
    fn repetition(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("loops within each other".to_owned());
        }
        place.at += 1;
        let name = place.word().unwrap_or("").to_owned();
        place.at += 1;
        place.want("in")?;
        let mut values = Vec::new();
        while let Some(word) = place.word() {
            if live {
                values.extend(self.expand(word)?);
            }
            place.at += 1;
        }
        place.want("do")?;
        let start = place.at;
        let mut last = true;
        if values.is_empty() {
            self.list(place, &["done"], false)?;
        }
        for value in values {
            self.variables.insert(name.clone(), value);
            place.at = start;
            last = self.list(place, &["done"], live)?;
        }
        place.want("done")?;
        self.depth -= 1;
        Ok(last)
    }

    /// One command; assignments before it are made.
    fn simple(&mut self, place: &mut Place<'_>, live: bool) -> Result<Simple, String> {
        let mut command = Simple::default();
        loop {
            match place.tokens.get(place.at) {
                Some(Token::Word(word)) => {
                    place.at += 1;
                    if !live {
                        continue;
                    }
                    if command.words.is_empty()
                        && let Some((name, value)) = assignment(word)
                    {
                        let value = self.expand(value)?.join(" ");
                        self.variables.insert(name.to_owned(), value);
                        continue;
                    }
                    command.words.extend(self.expand(word)?);
                }
                Some(Token::Redirect(op)) => {
                    let Some(Token::Word(target)) = place.tokens.get(place.at + 1) else {
                        return Err("a redirection without its target".to_owned());
                    };
                    place.at += 2;
                    if live && op.starts_with('>') {
                        command.output = Some(self.expand(target)?.join(" "));
                    }
                }
                _ => return Ok(command),
            }
        }
    }

    /// What a word stands for: quotes removed, variables and arithmetic worked out.
    fn expand(&mut self, raw: &str) -> Result<Vec<String>, String> {
        let (mut text, mut splits, mut quoted) = (String::new(), false, false);
        let mut rest = raw;
        let mut within = false;
        while let Some(c) = rest.chars().next() {
            let mut len = c.len_utf8();
            match c {
                '\'' if !within => {
                    let end = rest[1..].find('\'').unwrap_or(rest.len() - 1);
                    text.push_str(&rest[1..=end]);
                    quoted = true;
                    len = (end + 2).min(rest.len());
                }
                '"' => {
                    within = !within;
                    quoted = true;
                }
                '\\' => {
                    if let Some(next) = rest[1..].chars().next() {
                        if within && !"\"\\$`\n".contains(next) {
                            text.push('\\');
                        }
                        if next != '\n' {
                            text.push(next);
                        }
                        len += next.len_utf8();
                    }
                }
                '$' => {
                    len = dollar_length(rest)?;
                    splits |= !within;
                    let value = self.dollar(&rest[..len])?;
                    text.push_str(&value);
                }
                c => text.push(c),
            }
            rest = &rest[len..];
            if text.len() > LONGEST {
                return Err("a word without measure".to_owned());
            }
        }
        if splits && !quoted {
            return Ok(text.split_whitespace().map(str::to_owned).collect());
        }
        Ok(vec![text])
    }

    /// What nstat and the filters behind it print.
    fn counted(&mut self, tokens: &[Token]) -> Result<String, String> {
        let mut stages = vec![Vec::new()];
        for token in tokens {
            match token {
                Token::Word(word) => {
                    let words = self.expand(word)?;
                    stages.last_mut().expect("there is one").extend(words);
                }
                Token::Sign("|") => stages.push(Vec::new()),
                _ => return Err(format!("{token:?} behind nstat")),
            }
        }
        let (text, _) = shown::pipe(self.around.shown, &stages)?;
        Ok(text.trim_end().to_owned())
    }

    fn dollar(&mut self, text: &str) -> Result<String, String> {
        if let Some(sum) = text.strip_prefix("$((").and_then(|t| t.strip_suffix("))")) {
            // Names stand in arithmetic without their sign, too.
            let mut plain = self.expand(&format!("\"{}\"", sum.replace('"', "")))?.join(" ");
            plain = plain.replace('/', "//");
            let names = self.variables.iter().filter_map(|(n, v)| Some((n, v.parse().ok()?)));
            return expression::whole_number(&plain, names)
                .map(|n| n.to_string())
                .ok_or_else(|| format!("the arithmetic {text}"));
        }
        if let Some(inner) = text.strip_prefix("$(").and_then(|t| t.strip_suffix(')')) {
            let tokens = tokens(inner)?;
            if matches!(tokens.first(), Some(Token::Word(word)) if word == "nstat") {
                return self.counted(&tokens);
            }
            let words: Vec<String> = tokens
                .into_iter()
                .map(|token| match token {
                    Token::Word(word) => word,
                    Token::Sign(sign) => sign.to_owned(),
                    Token::Redirect(_) => ">".to_owned(),
                })
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            return commands::output(self.around, &words)
                .ok_or_else(|| format!("the output of {inner:?}"));
        }
        let name = text.trim_start_matches('$').trim_matches(['{', '}']);
        match name {
            "" => Ok("$".to_owned()),
            "?" => Ok("0".to_owned()),
            _ => match self.variables.get(name) {
                Some(value) => Ok(value.clone()),
                None if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                    Ok(String::new())
                }
                None => Err(format!("the shell's {text}")),
            },
        }
    }
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let plain = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then_some((name, value))
}

/// Understands a command, which may be several lines: how long it slept, or `None` where it fails. An error says which
/// construct is not understood.
pub(crate) fn run(command: &str, around: &mut Surroundings<'_>) -> Result<Option<Slept>, String> {
    let mut machine = Machine::new(around);
    Ok(machine.text(command)?.then(|| machine.time()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_host::settings::{MS, Route, Sysctls};
    use std::path::Path;

    use super::super::Shown;

    fn settings(command: &str) -> Result<(Sysctls, Route), String> {
        let (mut sysctls, mut route) = (Sysctls::default(), Route::default());
        let folder = Path::new("/nonexistent");
        let mut shown = Shown::default();
        let mut around = Surroundings {
            sysctls: &mut sysctls,
            route: &mut route,
            folder,
            shown: &mut shown,
            changes: Vec::new(),
        };
        run(command, &mut around)?.ok_or("it fails")?;
        Ok((sysctls, route))
    }

    #[test]
    fn system_controls_are_set_in_every_spelling() {
        for command in [
            "sysctl -q net.ipv4.tcp_sack=0",
            "sysctl -q -w net.ipv4.tcp_sack=0 net.ipv4.tcp_rmem=\"4096 1000 2000\"",
            "sysctl -qw \\\n net.ipv4.tcp_sack=0",
            "../common/set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0",
            "echo 0 > /proc/sys/net/ipv4/tcp_sack",
        ] {
            assert_eq!(settings(command).unwrap().0.of("tcp_sack"), 0, "{command}");
        }
        assert_eq!(settings("sysctl net.ipv4.tcp_rmem='1 2 3' ").unwrap().0.nth("tcp_rmem", 2), 3);
    }

    #[test]
    fn routes_have_metrics_and_what_is_not_understood_is_named() {
        let route =
            settings("ip route replace 192.0.2.0/24 dev tun0 initcwnd 5 rto_min 5ms").unwrap().1;
        assert_eq!((route.initcwnd, route.rto_min), (5, 5 * MS));
        assert!(settings("iptables -A INPUT").unwrap_err().contains("iptables"));
        assert!(settings("sysctl net.ipv4.tcp_no_such=1").unwrap_err().contains("tcp_no_such"));
    }

    #[test]
    fn what_a_shell_computes_is_computed() {
        let text = "#!/bin/bash\n# defaults\nMEG=$((1024 * 1024))\n\
            sysctl -q net.ipv4.tcp_rmem=\"4096 540000 $((15*MEG))\" \\\n  net.ipv4.tcp_wmem='4096 9 10'\n\
            if [ -f /proc/sys/net/ipv4/tcp_none ]; then\n sysctl -q net.ipv4.tcp_sack=0\nelse\n\
            for n in dsack sack; do echo $((1 + 1)) > /proc/sys/net/ipv4/tcp_$n; done\nfi\n\
            sysctl -q net.ipv4.tcp_fastopen=0x70403 2>/dev/null || false\nexit 0\nno_such_command\n";
        let sysctls = settings(text).unwrap().0;
        assert_eq!(sysctls.nth("tcp_rmem", 2), 15 << 20);
        assert_eq!((sysctls.nth("tcp_wmem", 1), sysctls.of("tcp_fastopen")), (9, 0x70403));
        assert_eq!((sysctls.of("tcp_sack"), sysctls.of("tcp_dsack")), (2, 2));
        let sysctls = settings("bash -c \"sysctl -q net.ipv4.tcp_sack=0\" && true").unwrap().0;
        assert_eq!(sysctls.of("tcp_sack"), 0);
        let nested = format!("{}true", "( { ".repeat(5000));
        let doubled = format!("X=xy; {}", "X=$X$X; ".repeat(64));
        for unknown in [
            nested.as_str(),
            &doubled,
            "nstat | grep -q TcpExtTCPHPAcks",
            "a=$(curl x)",
            "while true; do true; done",
            "false",
        ] {
            assert!(settings(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_file_of_defaults_is_read_and_its_errors_change_nothing() {
        let folder = std::env::temp_dir().join(format!("acklab-defaults-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let text = "no_such_command\nsysctl -q net.ipv4.tcp_rmem=\"1 2 $((3*4))\"\n";
        std::fs::write(folder.join("defaults.sh"), text).unwrap();
        let (mut sysctls, mut route) = (Sysctls::default(), Route::default());
        let mut around = Surroundings {
            sysctls: &mut sysctls,
            route: &mut route,
            folder: &folder,
            shown: &mut Shown::default(),
            changes: Vec::new(),
        };
        let done = run("./defaults.sh", &mut around);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(done, Ok(Some(0)));
        assert_eq!(sysctls.nth("tcp_rmem", 2), 12);
    }
}
