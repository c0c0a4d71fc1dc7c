//! The shell's grammar, as far as scripts about TCP need it: lists with `;`, `&&` and `||`, pipes, `if`, `for`, quotes,
//! variables, arithmetic and redirections.

/// A part of a command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word as it stands, with its quotes.
    Word(String),
    /// `;` (also a line's end), `&&`, `||`, `|`, `&`, `(`, `)`.
    Sign(&'static str),
    /// `>`, `>>` or `<` of a descriptor; the target is the next word.
    Redirect(&'static str),
}

/// Cuts a text into tokens; an error says what is not understood.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '\n' => sign(&mut all, ";", 1),
            c if c.is_whitespace() => c.len_utf8(),
            '\\' if rest.starts_with("\\\n") => 2,
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '&' if rest.starts_with("&&") => sign(&mut all, "&&", 2),
            '&' if rest.starts_with("&>") => {
                all.push(Token::Redirect(">"));
                2
            }
            '|' if rest.starts_with("||") => sign(&mut all, "||", 2),
            ';' => sign(&mut all, ";", if rest.starts_with(";;") { 2 } else { 1 }),
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
                all.push(Token::Word(rest[..len].to_owned()));
                len
            }
        };
        rest = &rest[len..];
    }
    Ok(all)
}

fn sign(all: &mut Vec<Token>, sign: &'static str, len: usize) -> usize {
    all.push(Token::Sign(sign));
    len
}

/// A redirection that begins at `rest`, behind `digits` digits of a descriptor.
fn redirect(all: &mut Vec<Token>, rest: &str, digits: usize) -> Result<usize, String> {
    let body = &rest[digits..];
    if body.starts_with("<<") || body.starts_with("<(") || body.starts_with(">(") {
        return Err(format!("the redirection {:?}", body.get(..2).unwrap_or(body)));
    }
    if let Some(tail) = body.strip_prefix(">&") {
        // One descriptor as another: nothing that a setting depends on.
        let name = tail.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(tail.len());
        return Ok(digits + 2 + name);
    }
    let (op, len) = if body.starts_with(">>") {
        (">>", 2)
    } else if body.starts_with('>') {
        (">", 1)
    } else {
        ("<", 1)
    };
    // What a command says about its errors is not looked at.
    let op = if op != "<" && rest.starts_with('2') && digits == 1 { "2>" } else { op };
    all.push(Token::Redirect(op));
    Ok(digits + len)
}

/// Bytes of the word that begins here.
fn word_length(text: &str) -> Result<usize, String> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\'' => at += 1 + closing(&text[at + 1..], '\'')? + 1,
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
            Some(c) => at += c.len_utf8(),
        }
    }
}

/// Bytes of `$NAME`, `${NAME}`, `$((…))` or `$(…)`.
pub(super) fn dollar_length(text: &str) -> Result<usize, String> {
    let rest = &text[1..];
    if rest.starts_with('(') {
        let mut open = 0;
        for (at, c) in rest.char_indices() {
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Ok(at + 2);
            }
        }
        return Err("$( without its end".to_owned());
    }
    if rest.starts_with('{') {
        return closing(rest, '}').map(|end| end + 2);
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
