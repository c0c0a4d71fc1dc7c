//! Lists of commands, one after another: what of them runs, and what words stand for.

use std::collections::BTreeMap;

use super::syntax::{Token, tokens};
use super::{Slept, Surroundings, commands, shown};

/// More commands no script about TCP has.
const STEPS: usize = 10_000;
/// Scripts that run each other, and conditions in conditions.
pub(super) const DEEPEST: usize = 12;

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
    pub(super) variables: BTreeMap<String, String>,
    /// What functions do.
    pub(super) functions: BTreeMap<String, Vec<Token>>,
    slept: Slept,
    steps: usize,
    pub(super) depth: usize,
    /// `exit` was reached, or `return`.
    pub(super) over: bool,
    /// It was `return`.
    pub(super) returns: bool,
    /// Commands that are not understood fail, and the script goes on.
    pub(super) lenient: bool,
}

pub(super) struct Place<'t> {
    pub(super) tokens: &'t [Token],
    pub(super) at: usize,
}

impl Place<'_> {
    pub(super) fn word(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn skip_ends(&mut self) {
        while self.take_sign(";") || self.take_sign("&") {}
    }

    pub(super) fn want(&mut self, word: &str) -> Result<(), String> {
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
            functions: BTreeMap::new(),
            slept: 0,
            steps: 0,
            depth: 0,
            over: false,
            returns: false,
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

    /// `exit`: nothing more runs; or `return`: nothing more of the function.
    pub(super) const fn end(&mut self, returns: bool) {
        self.over = true;
        self.returns = returns;
    }

    /// Gives a value to a name.
    pub(super) fn assign(&mut self, name: &str, value: String) {
        self.variables.insert(name.to_owned(), value);
    }

    /// Runs a text; returns whether its last command succeeded.
    pub(super) fn text(&mut self, text: &str) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("scripts that run each other".to_owned());
        }
        let all = tokens(text)?;
        let mut place = Place { tokens: &all, at: 0 };
        let mut done = self.list(&mut place, &[], true)?;
        while place.at < all.len() && !self.over {
            if !self.lenient {
                return Err(format!("{:?} in a shell's command", all[place.at]));
            }
            place.at += 1;
            done = self.list(&mut place, &[], true)?;
        }
        self.over = false;
        self.depth -= 1;
        Ok(done)
    }

    /// Commands up to one of `ends`; `live`: they run.
    pub(super) fn list(
        &mut self,
        place: &mut Place<'_>,
        ends: &[&str],
        live: bool,
    ) -> Result<bool, String> {
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
        let (mut stages, mut fails) = (Vec::new(), false);
        loop {
            self.step()?;
            let word = place.word().unwrap_or("").to_owned();
            let defines = word == "function"
                || matches!(place.tokens.get(place.at + 1), Some(Token::Sign("(")))
                    && matches!(place.tokens.get(place.at + 2), Some(Token::Sign(")")));
            let compound = match word.as_str() {
                "if" => Some(self.condition(place, live)),
                "for" => Some(self.repetition(place, live)),
                "while" | "until" => Some(self.while_it_holds(place, live)),
                "case" => Some(self.case(place, live)),
                "[[" => Some(self.brackets(place, live)),
                "select" => return Err(format!("the shell's {word:?}")),
                _ if defines && is_name(word.trim_end_matches("()")) => {
                    Some(self.function(place, live))
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
            match self.simple(place, live) {
                Ok(simple) => stages.push(simple),
                Err(_) if self.lenient => fails = true,
                Err(what) => return Err(what),
            }
            if !place.take_sign("|") {
                break;
            }
            while place.take_sign(";") {}
        }
        if !live {
            return Ok(true);
        }
        if fails {
            return Ok(negated);
        }
        match self.run_stages(stages) {
            Err(_) if self.lenient => Ok(negated),
            done => done.map(|done| done != negated),
        }
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
        let Some(name) = first.words.first() else { return Ok(true) };
        match self.functions.get(name).cloned() {
            Some(body) => self.call(&body, &first.words),
            None => commands::run(self, &first),
        }
    }

    pub(super) fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > STEPS { Err("a shell's loop that does not end".to_owned()) } else { Ok(()) }
    }

    /// One command; assignments before it are made. Where a word is not understood, the place is behind the command all the
    /// same.
    fn simple(&mut self, place: &mut Place<'_>, live: bool) -> Result<Simple, String> {
        let mut command = Simple::default();
        let mut fault = None;
        loop {
            let live = live && fault.is_none();
            match place.tokens.get(place.at) {
                Some(Token::Word(word)) => {
                    place.at += 1;
                    if !live {
                        continue;
                    }
                    let sets =
                        command.words.first().is_none_or(|first| SETTERS.contains(&first.as_str()));
                    let set = assignment(word).filter(|_| sets);
                    match self.expand(set.map_or(word, |(_, value)| value)) {
                        Err(what) => fault = Some(what),
                        Ok(words) => match set {
                            Some((name, _)) => self.assign(name, words.join(" ")),
                            None => command.words.extend(words),
                        },
                    }
                }
                Some(Token::Redirect(op)) => {
                    let Some(Token::Word(target)) = place.tokens.get(place.at + 1) else {
                        return Err("a redirection without its target".to_owned());
                    };
                    place.at += 2;
                    if live && op.starts_with('>') {
                        match self.expand(target) {
                            Ok(words) => command.output = Some(words.join(" ")),
                            Err(what) => fault = Some(what),
                        }
                    }
                    if live && *op == "<<" {
                        fault = Some("a text (<<) that a command reads".to_owned());
                    }
                }
                _ => return fault.map_or(Ok(command), Err),
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Commands whose words are assignments.
const SETTERS: [&str; 5] = ["local", "export", "declare", "readonly", "typeset"];

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
            "f() { f; }; f",
            "sysctl -p - <<EOF\nnet.ipv4.tcp_sack=0\nEOF\n",
            "cat /tmp/x > /proc/sys/net/ipv4/tcp_sack",
            "echo ${X/a/b}",
            "case x in x true ;; esac",
            "false",
        ] {
            assert!(settings(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn functions_conditions_and_what_stands_for_names_not_set_are_a_shells() {
        for (text, sack, recovery) in [
            ("set_it() { sysctl -q net.ipv4.tcp_$1=$2; }\nset_it sack 0; set_it recovery 2", 0, 2),
            (
                "function both {\n local v=${3:-2}\n for n in \"$@\"; do sysctl -q $n=$v; done\n return 0\n false\n}\nboth net.ipv4.tcp_sack net.ipv4.tcp_recovery",
                2,
                2,
            ),
            ("V=; sysctl -q net.ipv4.tcp_sack=${V:-0} net.ipv4.tcp_recovery=${W-${V:-3}}", 0, 3),
            (
                "export S=0; : ${R:=2}; sysctl -q net.ipv4.tcp_sack=$S net.ipv4.tcp_recovery=${R:+$R}",
                0,
                2,
            ),
            (
                "n=0; while [ $n -lt 3 ]; do n=$((n + 1)); done; sysctl -q net.ipv4.tcp_recovery=$n",
                1,
                3,
            ),
            (
                "case $(uname -r) in 4.*|5.*) false;; 6.*) echo 0 > /proc/sys/net/ipv4/tcp_sack;; *) false;; esac",
                0,
                1,
            ),
            (
                "if [[ -f /proc/sys/net/ipv4/tcp_sack && \"a b\" != c || -z x ]]; then sysctl -q net.ipv4.tcp_sack=0; fi",
                0,
                1,
            ),
            (
                "V=`sysctl -n net.ipv4.tcp_recovery`; sysctl -q net.ipv4.tcp_sack=\"`echo $V`\"",
                1,
                1,
            ),
        ] {
            let sysctls = settings(text).unwrap_or_else(|what| panic!("{text}: {what}")).0;
            assert_eq!(
                (sysctls.of("tcp_sack"), sysctls.of("tcp_recovery")),
                (sack, recovery),
                "{text}"
            );
        }
    }

    #[test]
    fn a_file_of_defaults_is_read_and_its_errors_change_nothing() {
        let folder = std::env::temp_dir().join(format!("acklab-defaults-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let text = "no_such_command\nA=(1 2 3)\ncat <<EOF\nit's\nEOF\nX=${Y/a/b}\nfor i in ${!A[@]}; do x; done\n\
                    sysctl -q net.ipv4.tcp_rmem=\"1 2 $((3*4))\"\n";
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
