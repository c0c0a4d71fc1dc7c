//! Assertions: the part of Python that scripts about TCP_INFO use.
//!
//! Statements are `assert`, `print`, assignments, `if`/`elif`/`else`, `for` over lists and `pass`; expressions have
//! numbers, texts, lists, names, arithmetic, comparisons in chains, `in`, `and`, `or`, `not`, conditionals, `%` formats
//! and the functions of `operate`. Anything else is told as not supported, never passed.

mod datum;
mod operate;
mod parser;

pub use datum::{Datum, Fault, Names};

use parser::Parser;

/// Runs code; returns how many assertions held and what was printed.
pub fn run(code: &str, names: &mut Names) -> Result<(usize, Vec<String>), Fault> {
    let lines = logical_lines(code);
    let mut machine = Machine { names, held: 0, printed: Vec::new(), steps: 0 };
    let end = machine.block(&lines, 0, lines.first().map_or(0, |l| l.0), true)?;
    if end < lines.len() {
        return Err(Fault::Unsupported(format!("indentation of {:?}", lines[end].1)));
    }
    Ok((machine.held, machine.printed))
}

/// The whole number that an expression over texts' numbers is.
pub(crate) fn whole_number<'n>(
    text: &str,
    variables: impl Iterator<Item = (&'n String, i128)>,
) -> Option<i128> {
    let names: Names = variables.map(|(n, v)| (n.clone(), Datum::Int(v))).collect();
    let mut parser = Parser::new(text, &names).ok()?;
    let value = parser.expression().ok()?;
    parser.end().ok()?;
    match value {
        Datum::Int(number) => Some(number),
        _ => None,
    }
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
    // A first line behind the opening brace has no indentation of its own.
    if let [first, next, ..] = lines.as_mut_slice()
        && !first.1.ends_with(':')
    {
        first.0 = next.0;
    }
    // Statements on one line.
    let mut all = Vec::new();
    for (indent, line) in lines {
        for part in split_statements(&line) {
            all.push((indent, part));
        }
    }
    part_inline(all)
}

/// `if x: y` as two lines.
fn part_inline(lines: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    for (indent, line) in lines {
        let opens = ["if ", "elif ", "else", "for "].iter().any(|word| line.starts_with(word));
        match colon(&line).filter(|&at| opens && at + 1 < line.len()) {
            Some(at) => {
                all.push((indent, line[..=at].to_owned()));
                all.push((indent + 1, line[at + 1..].trim().to_owned()));
            }
            None => all.push((indent, line)),
        }
    }
    all
}

/// Where a line's condition ends.
fn colon(line: &str) -> Option<usize> {
    let (mut quote, mut open) = (None, 0_i32);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            ('(' | '[', None) => open += 1,
            (')' | ']', None) => open -= 1,
            (':', None) if open == 0 => return Some(at),
            _ => {}
        }
    }
    None
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
    /// Rounds of loops.
    steps: usize,
}

/// More rounds no assertion needs.
const STEPS: usize = 100_000;

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
            if let Some(head) = statement.strip_prefix("for ") {
                at = self.each(lines, at, indent, head, live)?;
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

    /// `for NAME in LIST:`; returns the line after its statements.
    fn each(
        &mut self,
        lines: &[(usize, String)],
        at: usize,
        indent: usize,
        head: &str,
        live: bool,
    ) -> Result<usize, Fault> {
        let unsupported = || Fault::Unsupported(format!("the statement \"for {head}\""));
        let (name, list) = head.split_once(" in ").ok_or_else(unsupported)?;
        let list = list.trim().strip_suffix(':').ok_or_else(unsupported)?;
        let inner = lines.get(at + 1).map(|l| l.0).filter(|&i| i > indent);
        let inner = inner.ok_or_else(unsupported)?;
        let items = if live { self.evaluate(list)? } else { Datum::List(Vec::new()) };
        let Datum::List(items) = items else { return Err(unsupported()) };
        // Read once at least, for its end.
        let mut end = self.block(lines, at + 1, inner, false)?;
        for item in items {
            self.steps += 1;
            if self.steps > STEPS {
                return Err(Fault::Unsupported("a loop without measure".to_owned()));
            }
            self.assign(name, item)?;
            end = self.block(lines, at + 1, inner, true)?;
        }
        Ok(end)
    }

    /// Gives a value to a name, or its items to several.
    fn assign(&mut self, target: &str, value: Datum) -> Result<(), Fault> {
        let names: Vec<&str> = target.split(',').map(str::trim).collect();
        let values = match (names.len(), value) {
            (1, value) => vec![value],
            (wanted, Datum::List(items)) if items.len() == wanted => items,
            (_, value) => return Err(Fault::Unsupported(format!("{target} = {value}"))),
        };
        for (name, value) in names.into_iter().zip(values) {
            if !is_name(name) {
                return Err(Fault::Unsupported(format!("the name {name:?}")));
            }
            self.names.insert(name.to_owned(), value);
        }
        Ok(())
    }

    fn statement(&mut self, line: &str) -> Result<(), Fault> {
        // What a module has is not understood where it is used.
        let has_no_effect = ["import", "from", "global"];
        if line == "pass" || has_no_effect.iter().any(|name| word(line, name).is_some()) {
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
        if let Some((name, sign, value)) = augmented(line) {
            let text = format!("{name} {sign} ({value})");
            let value = self.evaluate(&text)?;
            self.names.insert(name.to_owned(), value);
            return Ok(());
        }
        if let Some((targets, value)) = assignment(line) {
            let mut parser = Parser::new(value, self.names)?;
            let mut value = parser.expression()?;
            if parser.take(",") {
                let mut items = vec![value, parser.expression()?];
                while parser.take(",") {
                    items.push(parser.expression()?);
                }
                value = Datum::List(items);
            }
            parser.end()?;
            for target in targets {
                self.assign(target, value.clone())?;
            }
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

/// `name += value` and its kin.
fn augmented(line: &str) -> Option<(&str, &str, &str)> {
    let (left, value) = line.split_once('=')?;
    let sign = ["//", "<<", ">>", "**", "+", "-", "*", "/", "%", "&", "|", "^"]
        .into_iter()
        .find(|sign| left.ends_with(sign))?;
    let name = left.strip_suffix(sign)?.trim();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (plain && !value.starts_with('=')).then_some((name, sign, value))
}

fn is_name(text: &str) -> bool {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain && !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty()
}

/// `a = b = value` or `a, b = values`: the targets and the value.
fn assignment(line: &str) -> Option<(Vec<&str>, &str)> {
    let (mut targets, mut rest) = (Vec::new(), line);
    while let Some((target, value)) = rest.split_once('=') {
        let names = target.split(',').all(|name| is_name(name.trim()));
        if !names || value.starts_with('=') {
            break;
        }
        targets.push(target);
        rest = value;
    }
    (!targets.is_empty()).then_some((targets, rest))
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
        for message in ["f'cwnd {tcpi_snd_cwnd}'", "'{} of {}'.format(tcpi_snd_cwnd, 1)"] {
            assert_eq!(holds(&format!("import sys\nassert tcpi_snd_cwnd == 10, {message}")), Ok(1));
            let wrong = holds(&format!("assert tcpi_snd_cwnd == 11, {message}"));
            assert!(matches!(wrong, Err(Fault::Assertion(_))), "{wrong:?}");
        }
        for foreign in
            ["os.getpid()", "assert nothing_like_it == 1", "x.y()", "assert [x for x in (1, 2)]"]
        {
            assert!(matches!(holds(foreign), Err(Fault::Unsupported(_))), "{foreign}");
        }
    }

    #[test]
    fn signs_bind_as_in_python() {
        for code in [
            "assert (1 | 2 & 4) == 1",
            "assert (12 & 1 << 2) == 4",
            "assert (6 ^ 3 | 8 & 12) == 13",
            "assert (1 << 2 + 1) == 8",
            "assert 5 & 4 == 4",
            "assert (-7 // 2, -7 % 2, 7 // -2, 7 % -2, -7 // -2, -7 % -2) == (-4, 1, -4, -1, 3, -1)",
        ] {
            assert_eq!(holds(code), Ok(1), "{code}");
        }
    }

    #[test]
    fn conditions_choose_by_indentation() {
        let code =
            "\nx = 3\nif x > 2:\n  assert tcpi_snd_cwnd == 10\nelse:\n  assert 0\nassert x == 3\n";
        assert_eq!(holds(code), Ok(2));
        assert_eq!(holds("if tcpi_snd_cwnd == 10: assert 1\nelse: assert 0"), Ok(1));
        assert_eq!(holds("import sys\nif 0: assert 0"), Ok(0));
        assert_eq!(holds("assert 1; assert 2\n    assert 3\n"), Ok(3));
        assert_eq!(holds(" assert 1; assert 2\nassert 3\n"), Ok(3));
        assert_eq!(holds("for x in range(1, 4):\n  assert x > 0\n  y = x\nassert y == 3"), Ok(4));
        assert_eq!(holds("for x, y in [(1, 2), (3, 4)]: assert y - x == 1"), Ok(2));
        assert_eq!(holds("for x in range(0):\n  assert 0\nassert 1"), Ok(1));
        assert_eq!(holds("a, b = 1, 2; c = d = a + b; assert c == d == 3"), Ok(1));
        assert_eq!(holds("import math\nassert math.ceil(2.1) == sum([1, 2]) == 3"), Ok(1));
        assert_eq!(holds("x = 3; x += 4; x //= 2; assert x == 3"), Ok(1));
        assert_eq!(holds("assert 'cwnd %d' % tcpi_snd_cwnd == 'cwnd 10'"), Ok(1));
        assert_eq!(holds("assert tcpi_snd_cwnd in [9, 10] and abs(-2) == 2 and not 0"), Ok(1));
    }
}
