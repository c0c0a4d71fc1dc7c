//! Assertions: the part of Python that scripts about TCP_INFO use.
//!
//! Statements are `assert`, `print`, assignments, `if`/`elif`/`else` and `pass`; expressions have numbers, texts, lists,
//! names, arithmetic, comparisons in chains, `in`, `and`, `or`, `not`, conditionals, `%` formats and `abs`, `min`,
//! `max`, `int`, `float`, `len`, `round`. Anything else is told as not supported, never passed.

use std::collections::BTreeMap;
use std::fmt;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// A whole number.
    Int(i128),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// Several.
    List(Vec<Datum>),
    /// None.
    Nothing,
}

impl Datum {
    fn is_true(&self) -> bool {
        match self {
            Self::Int(n) => *n != 0,
            Self::Float(x) => *x != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Nothing => false,
        }
    }

    fn number(&self) -> Result<f64, Fault> {
        match self {
            Self::Int(n) => Ok(*n as f64),
            Self::Float(x) => Ok(*x),
            other => Err(Fault::Unsupported(format!("arithmetic with {other}"))),
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Float(x) => write!(f, "{x}"),
            Self::Text(text) => f.write_str(text),
            Self::List(list) => {
                f.write_str("[")?;
                for (at, item) in list.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Self::Nothing => f.write_str("None"),
        }
    }
}

/// Why code did not come to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// An assertion does not hold: its text and its message.
    Assertion(String),
    /// Something is not understood.
    Unsupported(String),
}

/// Names and their values.
pub type Names = BTreeMap<String, Datum>;

/// Runs code; returns how many assertions held and what was printed.
pub fn run(code: &str, names: &mut Names) -> Result<(usize, Vec<String>), Fault> {
    let lines = logical_lines(code);
    let mut machine = Machine { names, held: 0, printed: Vec::new() };
    let end = machine.block(&lines, 0, lines.first().map_or(0, |l| l.0), true)?;
    if end < lines.len() {
        return Err(Fault::Unsupported(format!("indentation of {:?}", lines[end].1)));
    }
    Ok((machine.held, machine.printed))
}

/// Lines with their indentation; those within parentheses or behind a backslash are joined.
fn logical_lines(code: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open = 0_i32;
    let mut joined = false;
    for raw in code.lines() {
        let line = strip_comment(raw);
        let line = line.trim_end();
        if line.trim().is_empty() && !joined {
            continue;
        }
        let (body, continues) = match line.strip_suffix('\\') {
            Some(body) => (body, true),
            None => (line, false),
        };
        if joined && let Some((_, last)) = lines.last_mut() {
            last.push(' ');
            last.push_str(body.trim());
        } else {
            let indent = body.len() - body.trim_start().len();
            lines.push((indent, body.trim().to_owned()));
        }
        for c in body.chars() {
            match c {
                '(' | '[' => open += 1,
                ')' | ']' => open -= 1,
                _ => {}
            }
        }
        joined = continues || open > 0;
    }
    // Statements on one line.
    let mut all = Vec::new();
    for (indent, line) in lines {
        for part in split_statements(&line) {
            all.push((indent, part));
        }
    }
    // A first line behind the opening brace has no indentation of its own.
    if all.len() > 1 && all[0].0 != all[1].0 && !all[0].1.ends_with(':') {
        all[0].0 = all[1].0;
    }
    all
}

fn strip_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            ('#', None) => return &line[..at],
            _ => {}
        }
    }
    line
}

fn split_statements(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            (';', None) => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.iter().map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect()
}

struct Machine<'a> {
    names: &'a mut Names,
    held: usize,
    printed: Vec<String>,
}

impl Machine<'_> {
    /// Statements at one indentation; `live`: they run. Returns the line after them.
    fn block(
        &mut self,
        lines: &[(usize, String)],
        mut at: usize,
        indent: usize,
        live: bool,
    ) -> Result<usize, Fault> {
        while at < lines.len() && lines[at].0 >= indent {
            if lines[at].0 > indent {
                return Err(Fault::Unsupported(format!("indentation of {:?}", lines[at].1)));
            }
            let statement = &lines[at].1;
            if let Some(condition) = statement.strip_prefix("if ") {
                at = self.choice(lines, at, indent, condition, live)?;
                continue;
            }
            if live {
                self.statement(statement)?;
            }
            at += 1;
        }
        Ok(at)
    }

    fn choice(
        &mut self,
        lines: &[(usize, String)],
        mut at: usize,
        indent: usize,
        condition: &str,
        live: bool,
    ) -> Result<usize, Fault> {
        let mut condition = Some(condition.to_owned());
        let mut open = live;
        loop {
            let chosen = match &condition {
                Some(text) => {
                    let text = text.strip_suffix(':').ok_or_else(|| {
                        Fault::Unsupported("a condition and its statement on one line".to_owned())
                    })?;
                    open && self.evaluate(text)?.is_true()
                }
                None => open,
            };
            let Some(inner) = lines.get(at + 1).map(|l| l.0).filter(|&i| i > indent) else {
                return Err(Fault::Unsupported("a condition without statements".to_owned()));
            };
            at = self.block(lines, at + 1, inner, chosen)?;
            open &= !chosen;
            let next = lines.get(at).filter(|l| l.0 == indent).map(|l| l.1.as_str());
            condition = match next {
                Some(next) if next.starts_with("elif ") => Some(next[5..].to_owned()),
                Some(next) if next.trim_end_matches(':').trim() == "else" => None,
                _ => return Ok(at),
            };
        }
    }

    fn statement(&mut self, line: &str) -> Result<(), Fault> {
        if line == "pass" {
            return Ok(());
        }
        if let Some(rest) = word(line, "assert") {
            let mut parser = Parser::new(rest, self.names)?;
            let holds = parser.expression()?;
            let message = if parser.take(",") { Some(parser.expression()?) } else { None };
            parser.end()?;
            if !holds.is_true() {
                let says = message.map(|m| format!(": {m}")).unwrap_or_default();
                return Err(Fault::Assertion(format!("{}{says}", rest.trim())));
            }
            self.held += 1;
            return Ok(());
        }
        if let Some(rest) = word(line, "print") {
            if rest.trim().is_empty() {
                self.printed.push(String::new());
                return Ok(());
            }
            let mut parser = Parser::new(rest, self.names)?;
            let mut shown = vec![parser.expression()?.to_string()];
            while parser.take(",") {
                shown.push(parser.expression()?.to_string());
            }
            parser.end()?;
            self.printed.push(shown.join(" "));
            return Ok(());
        }
        if let Some((name, value)) = assignment(line) {
            let value = self.evaluate(value)?;
            self.names.insert(name.to_owned(), value);
            return Ok(());
        }
        Err(Fault::Unsupported(format!("the statement {line:?}")))
    }

    fn evaluate(&self, text: &str) -> Result<Datum, Fault> {
        let mut parser = Parser::new(text, self.names)?;
        let value = parser.expression()?;
        parser.end()?;
        Ok(value)
    }
}

/// The rest of a line behind a keyword.
fn word<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(keyword)?;
    let ends = rest.chars().next().is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '_'));
    ends.then_some(rest)
}

fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (plain && !value.starts_with('=')).then_some((name, value))
}

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

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    names: &'a Names,
}

impl<'a> Parser<'a> {
    fn new(text: &str, names: &'a Names) -> Result<Self, Fault> {
        Ok(Self { tokens: tokens(text)?, at: 0, depth: 0, names })
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(found);
        found
    }

    fn take_name(&mut self, name: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(n)) if n == name);
        self.at += usize::from(found);
        found
    }

    fn end(&self) -> Result<(), Fault> {
        match self.tokens.get(self.at) {
            None => Ok(()),
            Some(token) => Err(Fault::Unsupported(format!("{token:?} in an expression"))),
        }
    }

    fn expression(&mut self) -> Result<Datum, Fault> {
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
        let mut left = self.bits()?;
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
            let right = self.bits()?;
            let this = compare(&left, sign, &right)?;
            holds = Some(holds.unwrap_or(true) && this);
            left = right;
        }
        Ok(holds.map_or(left, truth))
    }

    fn bits(&mut self) -> Result<Datum, Fault> {
        let mut value = self.sum()?;
        loop {
            let sign = match self.tokens.get(self.at) {
                Some(Token::Sign(s)) if ["&", "|", "^", "<<", ">>"].contains(s) => *s,
                _ => return Ok(value),
            };
            self.at += 1;
            let right = self.sum()?;
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

    fn atom(&mut self) -> Result<Datum, Fault> {
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

fn truth(holds: bool) -> Datum {
    Datum::Int(i128::from(holds))
}

#[expect(clippy::float_cmp, reason = "Python compares exactly")]
fn compare(left: &Datum, sign: &str, right: &Datum) -> Result<bool, Fault> {
    if let (Datum::List(items), "in" | "not in") = (right, sign) {
        let found = items.iter().any(|item| compare(left, "==", item).unwrap_or(false));
        return Ok(found == (sign == "in"));
    }
    if let (Datum::Int(a), Datum::Int(b)) = (left, right) {
        return Ok(match sign {
            "<" => a < b,
            ">" => a > b,
            "<=" => a <= b,
            ">=" => a >= b,
            "==" => a == b,
            _ => a != b,
        });
    }
    let mixed =
        matches!((left, right), (Datum::Int(_) | Datum::Float(_), Datum::Int(_) | Datum::Float(_)));
    if !mixed {
        return match sign {
            "==" => Ok(left == right),
            "!=" => Ok(left != right),
            _ => Err(Fault::Unsupported(format!("{left} {sign} {right}"))),
        };
    }
    let (a, b) = (left.number()?, right.number()?);
    Ok(match sign {
        "<" => a < b,
        ">" => a > b,
        "<=" => a <= b,
        ">=" => a >= b,
        "==" => a == b,
        _ => a != b,
    })
}

fn operate(left: &Datum, sign: &str, right: &Datum) -> Result<Datum, Fault> {
    let unsupported = || Fault::Unsupported(format!("{left} {sign} {right}"));
    if let (Datum::Text(format), "%") = (left, sign) {
        return Ok(Datum::Text(render(format, right)));
    }
    if let (Datum::Text(a), "+", Datum::Text(b)) = (left, sign, right) {
        return Ok(Datum::Text(format!("{a}{b}")));
    }
    if let (Datum::Int(a), Datum::Int(b)) = (left, right) {
        let (a, b) = (*a, *b);
        let small = u32::try_from(b).ok();
        let whole = match sign {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "//" => a.checked_div_euclid(b),
            "%" => a.checked_rem_euclid(b),
            "&" => Some(a & b),
            "|" => Some(a | b),
            "^" => Some(a ^ b),
            "<<" => small.and_then(|b| a.checked_shl(b)),
            ">>" => small.and_then(|b| a.checked_shr(b)),
            "**" => small.and_then(|b| a.checked_pow(b)),
            "/" if b != 0 => return Ok(Datum::Float(a as f64 / b as f64)),
            _ => None,
        };
        return whole.map(Datum::Int).ok_or_else(unsupported);
    }
    let (a, b) = (left.number()?, right.number()?);
    match sign {
        "+" => Ok(Datum::Float(a + b)),
        "-" => Ok(Datum::Float(a - b)),
        "*" => Ok(Datum::Float(a * b)),
        "/" if b != 0.0 => Ok(Datum::Float(a / b)),
        "//" if b != 0.0 => Ok(Datum::Float((a / b).floor())),
        _ => Err(unsupported()),
    }
}

/// A format with its arguments, for messages.
fn render(format: &str, args: &Datum) -> String {
    let list = match args {
        Datum::List(list) => list.clone(),
        one => vec![one.clone()],
    };
    let mut args = list.into_iter();
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.find(|c| c.is_ascii_alphabetic() || *c == '%') {
            Some('%') => out.push('%'),
            Some(_) => out.push_str(&args.next().map(|a| a.to_string()).unwrap_or_default()),
            None => {}
        }
    }
    out
}

fn apply(name: &str, args: &[Datum]) -> Result<Datum, Fault> {
    let unsupported = || Fault::Unsupported(format!("the function {name}"));
    let extreme = |sign: &str| {
        let items = match args {
            [Datum::List(items)] => items.as_slice(),
            items => items,
        };
        let mut best = items.first().ok_or_else(unsupported)?;
        for item in &items[1..] {
            if compare(item, sign, best)? {
                best = item;
            }
        }
        Ok(best.clone())
    };
    match (name, args) {
        ("min", _) => extreme("<"),
        ("max", _) => extreme(">"),
        ("abs", [Datum::Int(n)]) => Ok(Datum::Int(n.abs())),
        ("abs", [Datum::Float(x)]) => Ok(Datum::Float(x.abs())),
        ("int" | "long", [value]) => Ok(Datum::Int(value.number()? as i128)),
        ("round", [value]) => Ok(Datum::Int(value.number()?.round_ties_even() as i128)),
        ("float", [value]) => Ok(Datum::Float(value.number()?)),
        ("len", [Datum::List(list)]) => Ok(Datum::Int(list.len() as i128)),
        ("str", [value]) => Ok(Datum::Text(value.to_string())),
        _ => Err(unsupported()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let pairs = [("tcpi_snd_cwnd", 10), ("tcpi_rtt", 100_500), ("TCP_CA_Open", 0)];
        pairs.iter().map(|(n, v)| ((*n).to_owned(), Datum::Int(*v))).collect()
    }

    fn holds(code: &str) -> Result<usize, Fault> {
        run(code, &mut names()).map(|(held, _)| held)
    }

    #[test]
    fn assertions_hold_or_fail_or_are_not_understood() {
        assert_eq!(holds("assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd"), Ok(1));
        assert_eq!(
            holds("\nassert 100000 <= tcpi_rtt < 101000\nassert tcpi_snd_cwnd // 3 == 3\n"),
            Ok(2)
        );
        assert!(
            matches!(holds("assert tcpi_snd_cwnd == 11, tcpi_snd_cwnd"), Err(Fault::Assertion(m)) if m.ends_with(": 10"))
        );
        for foreign in
            ["import os", "assert nothing_like_it == 1", "x.y()", "assert [x for x in (1, 2)]"]
        {
            assert!(matches!(holds(foreign), Err(Fault::Unsupported(_))), "{foreign}");
        }
    }

    #[test]
    fn conditions_choose_by_indentation() {
        let code =
            "\nx = 3\nif x > 2:\n  assert tcpi_snd_cwnd == 10\nelse:\n  assert 0\nassert x == 3\n";
        assert_eq!(holds(code), Ok(2));
        assert_eq!(holds("assert 'cwnd %d' % tcpi_snd_cwnd == 'cwnd 10'"), Ok(1));
        assert_eq!(holds("assert tcpi_snd_cwnd in [9, 10] and abs(-2) == 2 and not 0"), Ok(1));
    }
}
