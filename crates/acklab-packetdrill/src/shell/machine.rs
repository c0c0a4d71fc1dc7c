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
    /// What functions do.
    functions: BTreeMap<String, Vec<Token>>,
    slept: Slept,
    steps: usize,
    pub(super) depth: usize,
    /// `exit` was reached, or `return`.
    over: bool,
    /// It was `return`.
    returns: bool,
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
        let Some(name) = first.words.first() else { return Ok(true) };
        match self.functions.get(name).cloned() {
            Some(body) => self.call(&body, &first.words),
            None => commands::run(self, &first),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > STEPS { Err("a shell's loop that does not end".to_owned()) } else { Ok(()) }
    }

    /// `NAME() { … }` or `function NAME { … }`.
    fn function(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
        place.at += usize::from(place.word() == Some("function"));
        let name = place.word().unwrap_or("").trim_end_matches("()").to_owned();
        place.at += 1;
        if place.take_sign("(") && !place.take_sign(")") {
            return Err(format!("the shell's function {name:?}"));
        }
        place.want("{")?;
        let start = place.at;
        self.list(place, &["}"], false)?;
        let body = place.tokens[start..place.at].to_vec();
        place.want("}")?;
        if live {
            self.functions.insert(name, body);
        }
        Ok(true)
    }

    /// Runs a function with its name and arguments.
    fn call(&mut self, body: &[Token], words: &[String]) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("functions that call each other".to_owned());
        }
        let before = self.variables.clone();
        self.assign("#", (words.len() - 1).to_string());
        self.assign("@", words[1..].join(" "));
        for at in 1..10.max(words.len()) {
            self.assign(&at.to_string(), words.get(at).cloned().unwrap_or_default());
        }
        let done = self.list(&mut Place { tokens: body, at: 0 }, &[], true)?;
        self.variables.retain(|name, _| !is_argument(name));
        self.variables.extend(before.into_iter().filter(|(name, _)| is_argument(name)));
        if std::mem::take(&mut self.returns) {
            self.over = false;
        }
        self.depth -= 1;
        Ok(done)
    }

    /// `while` or `until LIST; do … done`.
    fn while_it_holds(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("loops within each other".to_owned());
        }
        let wanted = place.word() == Some("while");
        place.at += 1;
        let start = place.at;
        let mut last = true;
        loop {
            place.at = start;
            let holds = self.list(place, &["do"], live)? == wanted && live && !self.over;
            place.want("do")?;
            let done = self.list(place, &["done"], holds)?;
            place.want("done")?;
            if !holds {
                break;
            }
            last = done;
            self.step()?;
        }
        self.depth -= 1;
        Ok(last)
    }

    /// `case WORD in PATTERN) … ;; … esac`.
    fn case(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("conditions within each other".to_owned());
        }
        place.at += 1;
        let subject = place.word().unwrap_or("").to_owned();
        let subject = if live { self.expand(&subject)?.join(" ") } else { String::new() };
        place.at += 1;
        place.want("in")?;
        let (mut open, mut last) = (live, true);
        loop {
            place.skip_ends();
            if place.word() == Some("esac") {
                break;
            }
            place.take_sign("(");
            let mut fits = false;
            while let Some(pattern) = place.word() {
                let pattern = pattern.to_owned();
                place.at += 1;
                if open {
                    let pattern = self.expand(&pattern)?.join(" ");
                    fits |= shown::fits(&pattern, &subject);
                }
                place.take_sign("|");
            }
            if !place.take_sign(")") {
                return Err("a shell's case without its patterns".to_owned());
            }
            let done = self.list(place, &["esac"], open && fits)?;
            if open && fits {
                (open, last) = (false, done);
            }
            place.take_sign(";;");
        }
        place.want("esac")?;
        self.depth -= 1;
        Ok(last)
    }

    /// `[[ … ]]`, with `&&` and `||` from left to right.
    fn brackets(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
        place.at += 1;
        let (mut holds, mut asked) = (true, true);
        loop {
            let mut words = vec!["[[".to_owned()];
            while let Some(word) = place.word().filter(|&word| word != "]]") {
                let word = word.to_owned();
                place.at += 1;
                // No word is split here.
                words.extend(if live { self.expand(&format!("{word}\"\""))? } else { Vec::new() });
            }
            if live && asked {
                holds = match commands::run(self, &Simple { words, output: None }) {
                    Err(_) if self.lenient => false,
                    done => done?,
                };
            }
            if place.take_sign("&&") {
                asked = holds;
            } else if place.take_sign("||") {
                asked = !holds;
            } else {
                break;
            }
        }
        place.want("]]")?;
        Ok(holds)
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
                match self.expand(word) {
                    Err(_) if self.lenient => {}
                    words => values.extend(words?),
                }
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

    /// What a word stands for: quotes removed, variables and arithmetic worked out.
    fn expand(&mut self, raw: &str) -> Result<Vec<String>, String> {
        if raw == "\"$@\"" {
            let count: usize = self.variables.get("#").and_then(|n| n.parse().ok()).unwrap_or(0);
            return Ok((1..=count).map(|at| self.variables[&at.to_string()].clone()).collect());
        }
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
                '`' => {
                    let end = rest[1..].find('`').unwrap_or(rest.len() - 1);
                    splits |= !within;
                    let value = self.dollar(&format!("$({})", &rest[1..=end]))?;
                    text.push_str(&value);
                    len = (end + 2).min(rest.len());
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

    /// `${NAME:-WORD}` and its kin; `None`: not understood.
    fn or_else(&mut self, name: &str, rest: &str) -> Option<Result<String, String>> {
        let value = self.variables.get(name).cloned();
        let (colon, rest) = rest.strip_prefix(':').map_or((false, rest), |rest| (true, rest));
        let value = value.filter(|value| !colon || !value.is_empty());
        let sign = rest.chars().next()?;
        let mut word = || self.expand(&format!("\"{}\"", &rest[1..])).map(|words| words.join(" "));
        Some(match (sign, value) {
            ('-' | '=' | '?', Some(value)) => Ok(value),
            ('+', None) => Ok(String::new()),
            ('-' | '+', _) => word(),
            ('=', None) => word().inspect(|value| self.assign(name, value.clone())),
            _ => return None,
        })
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
            let mut words = Vec::new();
            for token in tokens {
                match token {
                    Token::Word(word) => words.extend(self.expand(&word)?),
                    Token::Sign(sign) => words.push(sign.to_owned()),
                    Token::Redirect(_) => words.push(">".to_owned()),
                }
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            return commands::output(self.around, &words)
                .ok_or_else(|| format!("the output of {inner:?}"));
        }
        let name = text.trim_start_matches('$');
        let name = name.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(name);
        let plain = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        if let Some((name, rest)) = plain.filter(|&at| at > 0).map(|at| name.split_at(at)) {
            return self.or_else(name, rest).ok_or_else(|| format!("the shell's {text}"))?;
        }
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

/// Names of a function's arguments.
fn is_argument(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit() || c == '#' || c == '@')
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
