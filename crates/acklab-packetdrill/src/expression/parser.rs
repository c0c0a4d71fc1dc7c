//! Expressions: read from tokens and worked out at once.

use super::datum::{Datum, Fault, Names};
use super::operate::{apply, compare, operate, truth};

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(Datum),
    Text(String),
    Name(String),
    Sign(&'static str),
}

const SIGNS: [&str; 25] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<", ">", "(", ")",
    "[", "]", ",", "&", "|", "^", "~", ".",
];

fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len;
        if first.is_ascii_digit()
            || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            len = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'))
                .unwrap_or(rest.len());
            all.push(Token::Number(number(&rest[..len])?));
        } else if let Some(text) = prefixed_text(rest) {
            // A format for people, or plain bytes: what stands in braces is not worked out.
            rest = text.trim_start();
            continue;
        } else if first.is_ascii_alphabetic() || first == '_' {
            len =
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            all.push(Token::Name(rest[..len].to_owned()));
        } else if first == '"' || first == '\'' {
            let Some(end) = rest[1..].find(first) else {
                return Err(Fault::Unsupported("a text without its end".to_owned()));
            };
            all.push(Token::Text(rest[1..=end].to_owned()));
            len = end + 2;
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            all.push(Token::Sign(sign));
            len = sign.len();
        } else {
            return Err(Fault::Unsupported(format!("{first:?} in an expression")));
        }
        rest = rest[len..].trim_start();
    }
    Ok(all)
}

/// What stands behind the `f`, `r`, `b` or `u` of a text.
fn prefixed_text(rest: &str) -> Option<&str> {
    let text = rest.strip_prefix(['f', 'r', 'b', 'u'])?;
    text.starts_with(['"', '\'']).then_some(text)
}

fn number(text: &str) -> Result<Datum, Fault> {
    let plain = text.replace('_', "");
    let whole = match plain.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => plain.parse().ok(),
    };
    whole
        .map(Datum::Int)
        .or_else(|| plain.parse().ok().map(Datum::Float))
        .ok_or_else(|| Fault::Unsupported(format!("the number {text:?}")))
}

pub(super) struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    names: &'a Names,
}

/// What binds closer stands below (Python's reference, section 6.17).
const BITS: [&[&str]; 4] = [&["|"], &["^"], &["&"], &["<<", ">>"]];

impl<'a> Parser<'a> {
    pub(super) fn new(text: &str, names: &'a Names) -> Result<Self, Fault> {
        Ok(Self { tokens: tokens(text)?, at: 0, depth: 0, names })
    }

    pub(super) fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(found);
        found
    }

    fn take_name(&mut self, name: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(n)) if n == name);
        self.at += usize::from(found);
        found
    }

    pub(super) fn end(&self) -> Result<(), Fault> {
        match self.tokens.get(self.at) {
            None => Ok(()),
            Some(token) => Err(Fault::Unsupported(format!("{token:?} in an expression"))),
        }
    }

    pub(super) fn expression(&mut self) -> Result<Datum, Fault> {
        self.depth += 1;
        if self.depth > 40 {
            return Err(Fault::Unsupported("an expression nested too deeply".to_owned()));
        }
        let value = self.either()?;
        let value = if self.take_name("if") {
            let chosen = self.either()?.is_true();
            if !self.take_name("else") {
                return Err(Fault::Unsupported("a conditional without else".to_owned()));
            }
            let other = self.expression()?;
            if chosen { value } else { other }
        } else {
            value
        };
        self.depth -= 1;
        Ok(value)
    }

    fn either(&mut self) -> Result<Datum, Fault> {
        let mut value = self.both()?;
        while self.take_name("or") {
            let other = self.both()?;
            value = if value.is_true() { value } else { other };
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<Datum, Fault> {
        let mut value = self.negation()?;
        while self.take_name("and") {
            let other = self.negation()?;
            value = if value.is_true() { other } else { value };
        }
        Ok(value)
    }

    fn negation(&mut self) -> Result<Datum, Fault> {
        if self.take_name("not") {
            return Ok(truth(!self.negation()?.is_true()));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Datum, Fault> {
        let mut left = self.bits(0)?;
        let mut holds = None;
        loop {
            let sign = match self.tokens.get(self.at) {
                Some(Token::Sign(s)) if ["<", ">", "<=", ">=", "==", "!="].contains(s) => *s,
                Some(Token::Name(n)) if n == "in" => "in",
                Some(Token::Name(n)) if n == "is" => "==",
                Some(Token::Name(n))
                    if n == "not"
                        && self.tokens.get(self.at + 1) == Some(&Token::Name("in".to_owned())) =>
                {
                    self.at += 1;
                    "not in"
                }
                _ => break,
            };
            self.at += 1;
            let right = self.bits(0)?;
            let this = compare(&left, sign, &right)?;
            holds = Some(holds.unwrap_or(true) && this);
            left = right;
        }
        Ok(holds.map_or(left, truth))
    }

    /// Of the signs between whole numbers those of `level` and what binds closer.
    fn bits(&mut self, level: usize) -> Result<Datum, Fault> {
        let Some(signs) = BITS.get(level) else { return self.sum() };
        let mut value = self.bits(level + 1)?;
        loop {
            let sign = match self.tokens.get(self.at) {
                Some(Token::Sign(sign)) if signs.contains(sign) => *sign,
                _ => return Ok(value),
            };
            self.at += 1;
            let right = self.bits(level + 1)?;
            value = operate(&value, sign, &right)?;
        }
    }

    fn sum(&mut self) -> Result<Datum, Fault> {
        let mut value = self.product()?;
        loop {
            let sign = if self.take("+") {
                "+"
            } else if self.take("-") {
                "-"
            } else {
                return Ok(value);
            };
            let right = self.product()?;
            value = operate(&value, sign, &right)?;
        }
    }

    fn product(&mut self) -> Result<Datum, Fault> {
        let mut value = self.unary()?;
        loop {
            let sign = match self.tokens.get(self.at) {
                Some(Token::Sign(s)) if ["*", "/", "//", "%"].contains(s) => *s,
                _ => return Ok(value),
            };
            self.at += 1;
            let right = self.unary()?;
            value = operate(&value, sign, &right)?;
        }
    }

    fn unary(&mut self) -> Result<Datum, Fault> {
        self.depth += 1;
        if self.depth > 200 {
            return Err(Fault::Unsupported("an expression nested too deeply".to_owned()));
        }
        let value = if self.take("-") {
            let value = self.unary()?;
            operate(&Datum::Int(0), "-", &value)?
        } else if self.take("+") {
            self.unary()?
        } else if self.take("~") {
            match self.unary()? {
                Datum::Int(n) => Datum::Int(!n),
                other => return Err(Fault::Unsupported(format!("~{other}"))),
            }
        } else {
            let base = self.atom()?;
            if self.take("**") {
                let exponent = self.unary()?;
                operate(&base, "**", &exponent)?
            } else {
                base
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    /// A value and what stands behind it in brackets: one of its items.
    fn atom(&mut self) -> Result<Datum, Fault> {
        let mut value = self.plain()?;
        if matches!(value, Datum::Text(_)) && self.take(".") {
            // What a message says of its values is for people.
            if !(self.take_name("format") && self.take("(")) {
                return Err(Fault::Unsupported("a method of a text".to_owned()));
            }
            self.items(")")?;
        }
        while self.take("[") {
            let (index, _) = self.items("]")?;
            value = match (&value, index.as_slice()) {
                (Datum::List(items), [Datum::Int(at)]) => {
                    let at = if *at < 0 { *at + items.len() as i128 } else { *at };
                    let item = usize::try_from(at).ok().and_then(|at| items.get(at)).cloned();
                    item.ok_or_else(|| Fault::Unsupported("an index beyond the list".to_owned()))?
                }
                _ => return Err(Fault::Unsupported("an index".to_owned())),
            };
        }
        Ok(value)
    }

    fn plain(&mut self) -> Result<Datum, Fault> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Number(value)) => Ok(value),
            Some(Token::Text(text)) => Ok(Datum::Text(text)),
            Some(Token::Sign("(")) => self.items(")").map(|mut items| {
                if items.1 || items.0.len() != 1 {
                    Datum::List(items.0)
                } else {
                    items.0.swap_remove(0)
                }
            }),
            Some(Token::Sign("[")) => self.items("]").map(|items| Datum::List(items.0)),
            Some(Token::Name(name)) => self.name(&name),
            other => Err(Fault::Unsupported(format!("{other:?} in an expression"))),
        }
    }

    fn name(&mut self, name: &str) -> Result<Datum, Fault> {
        if self.take("(") {
            let (args, _) = self.items(")")?;
            return apply(name, &args);
        }
        if name == "math" && self.take(".") {
            return match self.tokens.get(self.at).cloned() {
                Some(Token::Name(function)) => {
                    self.at += 1;
                    self.name(&function)
                }
                _ => Err(Fault::Unsupported("a part of math".to_owned())),
            };
        }
        match name {
            "True" => Ok(truth(true)),
            "False" => Ok(truth(false)),
            "None" => Ok(Datum::Nothing),
            _ => self
                .names
                .get(name)
                .cloned()
                .ok_or_else(|| Fault::Unsupported(format!("the name {name:?}"))),
        }
    }

    /// Expressions up to `end`; whether a comma stood among or behind them.
    fn items(&mut self, end: &str) -> Result<(Vec<Datum>, bool), Fault> {
        let (mut items, mut commas) = (Vec::new(), false);
        while !self.take(end) {
            items.push(self.expression()?);
            if self.take(",") {
                commas = true;
            } else if self.take(end) {
                break;
            } else {
                return Err(Fault::Unsupported("a list in an expression".to_owned()));
            }
        }
        Ok((items, commas))
    }
}
