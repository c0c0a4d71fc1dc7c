//! Commands that hold others: groups, conditions, loops and functions. Each is read where it does not run, too, for its end.

use super::machine::{DEEPEST, Machine, Place, Simple};
use super::syntax::Token;
use super::{commands, shown};

impl Machine<'_, '_> {
    /// `{ … }` or, where its opening is taken, `( … )`.
    pub(super) fn group(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
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

    /// `NAME() { … }` or `function NAME { … }`.
    pub(super) fn function(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
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
    pub(super) fn call(&mut self, body: &[Token], words: &[String]) -> Result<bool, String> {
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
    pub(super) fn while_it_holds(
        &mut self,
        place: &mut Place<'_>,
        live: bool,
    ) -> Result<bool, String> {
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
    pub(super) fn case(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
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
    pub(super) fn brackets(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
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
    pub(super) fn condition(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
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
    pub(super) fn repetition(&mut self, place: &mut Place<'_>, live: bool) -> Result<bool, String> {
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
}

/// Names of a function's arguments.
fn is_argument(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit() || c == '#' || c == '@')
}
