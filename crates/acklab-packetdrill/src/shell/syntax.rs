//! The shell's grammar, as far as scripts about TCP need it: lists with `;`, `&&` and `||`, pipes, conditions, loops,
//! functions, quotes, variables, arithmetic and redirections.

/// A part of a command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word as it stands, with its quotes.
    Word(String),
    /// `;` (also a line's end), `;;`, `&&`, `||`, `|`, `&`, `(`, `)`.
    Sign(&'static str),
    /// `>`, `>>`, `<` or `<<` of a descriptor; the target, or the word that ends the text, is the next word.
    Redirect(&'static str),
}

/// Cuts a text into tokens; an error says what is not understood.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut all = Vec::new();
    let mut rest = text;
    let mut texts: Vec<String> = Vec::new();
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '\n' => {
                let mut len = sign(&mut all, ";", 1);
                for end in texts.drain(..) {
                    len += text_length(&rest[len..], &end)?;
                }
                len
            }
            c if c.is_whitespace() => c.len_utf8(),
            '\\' if rest.starts_with("\\\n") => 2,
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '&' if rest.starts_with("&&") => sign(&mut all, "&&", 2),
            '&' if rest.starts_with("&>") => {
                all.push(Token::Redirect(">"));
                2
            }
            '|' if rest.starts_with("||") => sign(&mut all, "||", 2),
            ';' if rest.starts_with(";;") => sign(&mut all, ";;", 2),
            ';' => sign(&mut all, ";", 1),
            '&' => sign(&mut all, "&", 1),
            '|' => sign(&mut all, "|", 1),
            '(' => sign(&mut all, "(", 1),
            ')' => sign(&mut all, ")", 1),
            '>' | '<' => redirect(&mut all, rest, 0)?,
            c if c.is_ascii_digit() && rest[1..].starts_with(['>', '<']) => {
                redirect(&mut all, rest, 1)?
            }
            _ => {
                let len = word_length(rest)?;
                if all.last() == Some(&Token::Redirect("<<")) {
                    texts.push(rest[..len].replace(['\'', '"', '\\'], ""));
                }
                all.push(Token::Word(rest[..len].to_owned()));
                len
            }
        };
        rest = &rest[len..];
    }
    if texts.is_empty() { Ok(all) } else { Err("a text (<<) without its end".to_owned()) }
}

/// Bytes up to the line behind the one that is `end`.
fn text_length(text: &str, end: &str) -> Result<usize, String> {
    let mut len = 0;
    for line in text.split_inclusive('\n') {
        len += line.len();
        if line.trim_end_matches('\n').trim_start_matches('\t') == end {
            return Ok(len);
        }
    }
    Err("a text (<<) without its end".to_owned())
}

fn sign(all: &mut Vec<Token>, sign: &'static str, len: usize) -> usize {
    all.push(Token::Sign(sign));
    len
}

/// A redirection that begins at `rest`, behind `digits` digits of a descriptor.
fn redirect(all: &mut Vec<Token>, rest: &str, digits: usize) -> Result<usize, String> {
    let body = &rest[digits..];
    if body.starts_with("<<<") || body.starts_with("<(") || body.starts_with(">(") {
        return Err(format!("the redirection {:?}", body.get(..2).unwrap_or(body)));
    }
    if let Some(tail) = body.strip_prefix(">&") {
        // One descriptor as another: nothing that a setting depends on.
        let name = tail.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(tail.len());
        return Ok(digits + 2 + name);
    }
    let (op, len) = if body.starts_with(">>") {
        (">>", 2)
    } else if body.starts_with("<<") {
        ("<<", if body.starts_with("<<-") { 3 } else { 2 })
    } else if body.starts_with('>') {
        (">", 1)
    } else {
        ("<", 1)
    };
    // What a command says about its errors is not looked at.
    let op = if op.starts_with('>') && rest.starts_with('2') && digits == 1 { "2>" } else { op };
    all.push(Token::Redirect(op));
    Ok(digits + len)
}

/// Bytes of the word that begins here.
fn word_length(text: &str) -> Result<usize, String> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\'' | '`' => at += 1 + closing(&text[at + 1..], c)? + 1,
            '"' => at += 1 + quoted_length(&text[at + 1..])? + 1,
            '\\' => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '$' => at += dollar_length(&text[at..])?,
            c if c.is_whitespace() || ";&|()<>".contains(c) => break,
            c => at += c.len_utf8(),
        }
    }
    Ok(at)
}

fn closing(text: &str, quote: char) -> Result<usize, String> {
    text.find(quote).ok_or_else(|| "a quote without its end".to_owned())
}

/// Bytes up to the closing double quote.
fn quoted_length(text: &str) -> Result<usize, String> {
    let mut at = 0;
    loop {
        match text[at..].chars().next() {
            None => return Err("a quote without its end".to_owned()),
            Some('"') => return Ok(at),
            Some('\\') => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            Some('$') => at += dollar_length(&text[at..])?,
            Some('`') => at += 1 + closing(&text[at + 1..], '`')? + 1,
            Some(c) => at += c.len_utf8(),
        }
    }
}

/// Bytes of `$NAME`, `${NAME}`, `$((…))` or `$(…)`.
pub(super) fn dollar_length(text: &str) -> Result<usize, String> {
    let rest = &text[1..];
    if let Some(first @ ('(' | '{')) = rest.chars().next() {
        let last = if first == '(' { ')' } else { '}' };
        let mut open = 0;
        for (at, c) in rest.char_indices() {
            open += i32::from(c == first) - i32::from(c == last);
            if open == 0 {
                return Ok(at + 2);
            }
        }
        return Err(format!("${first} without its end"));
    }
    let name = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    // `$?`, `$$`, `$#`, `$@`.
    let special = usize::from(name == 0 && rest.starts_with(['?', '$', '#', '@', '*', '!']));
    Ok(1 + name + special)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_quotes_and_what_stands_in_parentheses() {
        let word = |text: &str| Token::Word(text.to_owned());
        let found = tokens("sysctl -q a=\"1 $((2 * 3))\" 2>/dev/null&&x # y\n'b c'>>d").unwrap();
        assert_eq!(
            found,
            [
                word("sysctl"),
                word("-q"),
                word("a=\"1 $((2 * 3))\""),
                Token::Redirect("2>"),
                word("/dev/null"),
                Token::Sign("&&"),
                word("x"),
                Token::Sign(";"),
                word("'b c'"),
                Token::Redirect(">>"),
                word("d"),
            ]
        );
        for broken in ["a 'b", "\"", "$(x", "${y", "cat <<EOF"] {
            assert!(tokens(broken).is_err(), "{broken}");
        }
    }
}
