//! What the words of commands stand for: quotes removed, variables, arithmetic and the output of commands worked out.

use super::machine::Machine;
use super::syntax::{Token, dollar_length, tokens};
use super::{commands, shown};
use crate::expression;

/// Longer words no command about TCP has.
const LONGEST: usize = 1 << 16;

impl Machine<'_, '_> {
    /// What a word stands for: quotes removed, variables and arithmetic worked out.
    pub(super) fn expand(&mut self, raw: &str) -> Result<Vec<String>, String> {
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
