//! Scripts.

use super::cursor::Cursor;
use super::packet::packet;
use super::value::{Value, list, value};
use super::{Call, Event, Kind, Script, SyntaxError, When};

/// Reads a script.
pub fn parse(text: &str) -> Result<Script, SyntaxError> {
    parse_with(text, &[])
}

/// Reads a script in which names stand for words of options, such as a cookie.
pub fn parse_with(text: &str, names: &[(String, String)]) -> Result<Script, SyntaxError> {
    let names: Vec<_> = names.iter().cloned().chain(definitions(text)).collect();
    let mut at = Cursor::new(text, &names);
    let mut script = Script::default();
    loop {
        at.skip();
        if at.take("--") {
            script.options.push(option(&mut at));
        } else if at.rest().starts_with('`') && script.events.is_empty() {
            let line = at.line();
            script.setup.push((line, command(&mut at)?));
        } else if at.is_at_end() {
            return Ok(script);
        } else {
            script.events.push(event(&mut at)?);
        }
    }
}

/// What `--define=NAME=VALUE` at the head of a script gives names to.
fn definitions(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.trim().strip_prefix("--define=")?.split_once('=')?;
        Some((name.trim().to_owned(), value[..length_of_value(value)].to_owned()))
    })
}

/// Up to the end of a text in quotes, or to a space.
fn length_of_value(value: &str) -> usize {
    let quoted = value.chars().next().filter(|c| "\"`".contains(*c));
    let end = quoted.and_then(|quote| value[1..].find(quote)).map(|at| at + 2);
    end.unwrap_or_else(|| value.find(char::is_whitespace).unwrap_or(value.len()))
}

/// `--name=value`, `--name value` or `--name`.
fn option(at: &mut Cursor<'_>) -> (String, String) {
    let rest = at.rest();
    let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
    let mut end = line.find(char::is_whitespace).unwrap_or(line.len());
    // A text in quotes may have spaces.
    if let Some(quote) = line[..end].find(['"', '`']) {
        end = quote + length_of_value(&line[quote..]);
    }
    let word = &line[..end];
    if let Some((name, value)) = word.split_once('=') {
        let text = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        at.advance(end);
        return (name.to_owned(), text.unwrap_or(value).to_owned());
    }
    let tail = line[end..].trim_start();
    let next = tail.split_whitespace().next().unwrap_or("");
    if next.is_empty() || next.starts_with("--") || next.starts_with("//") || next.starts_with('#')
    {
        at.advance(end);
        return (word.to_owned(), String::new());
    }
    at.advance(line.len() - tail.len() + next.len());
    (word.to_owned(), next.to_owned())
}

fn event(at: &mut Cursor<'_>) -> Result<Event, SyntaxError> {
    at.skip();
    let line = at.line();
    let (when, until) = time(at)?;
    at.skip();
    let kind = match at.peek() {
        Some('<') => {
            at.advance(1);
            Kind::Packet(packet(at, true)?)
        }
        Some('>') => {
            at.advance(1);
            Kind::Packet(packet(at, false)?)
        }
        Some('`') => Kind::Command(command(at)?),
        Some('%') => Kind::Code(code(at)?),
        Some(c) if c.is_ascii_alphabetic() || c == '_' => match defined_command(at) {
            Some(command) => Kind::Command(command),
            None => Kind::Call(call(at)?),
        },
        _ => return Err(at.expected("a packet, a call, a command or code")),
    };
    Ok(Event { line, when, until, kind })
}

fn time(at: &mut Cursor<'_>) -> Result<(When, Option<u64>), SyntaxError> {
    if at.take("*") {
        return Ok((When::Any, None));
    }
    at.skip();
    // Code and commands may stand without a time: then it is that of the event before.
    if matches!(at.peek(), Some('%' | '`')) {
        return Ok((When::At { relative: true, from: 0, to: None }, None));
    }
    let relative = at.take("+");
    let from = at.seconds()?;
    if at.take("~") {
        at.take("+");
        let to = at.seconds()?;
        if to < from {
            return Err(at.error("the range of time ends before it begins"));
        }
        return Ok((When::At { relative, from, to: Some(to) }, None));
    }
    let until = if at.take("...") {
        at.take("+");
        Some(at.seconds()?)
    } else {
        None
    };
    Ok((When::At { relative, from, to: None }, until))
}

/// A name that stands for a command.
fn defined_command(at: &mut Cursor<'_>) -> Option<String> {
    let command = at.meaning(at.next_word()).strip_prefix('`')?.strip_suffix('`')?.to_owned();
    at.word();
    Some(command)
}

/// What stands between backticks.
fn command(at: &mut Cursor<'_>) -> Result<String, SyntaxError> {
    at.want("`")?;
    let rest = at.rest();
    // A backquote behind a backslash is the shell's.
    let mut escaped = false;
    let ends = |c: char| {
        let plain = !std::mem::take(&mut escaped);
        escaped = plain && c == '\\';
        plain && c == '`'
    };
    let Some(end) = rest.find(ends) else { return Err(at.error("a command without its end")) };
    at.advance(end + 1);
    Ok(rest[..end].to_owned())
}

fn code(at: &mut Cursor<'_>) -> Result<String, SyntaxError> {
    at.want("%{")?;
    let rest = at.rest();
    let Some(end) = rest.find("}%") else { return Err(at.error("code without its end")) };
    at.advance(end + 2);
    Ok(rest[..end].to_owned())
}

fn call(at: &mut Cursor<'_>) -> Result<Call, SyntaxError> {
    let name = at.word().to_owned();
    at.want("(")?;
    let args = list(at, ")", 0)?;
    at.want("=")?;
    let result = value(at, 0)?;
    let mut error = None;
    if result == Value::Int(-1) {
        let next = at.next_word();
        if next.starts_with('E') {
            error = Some(at.word().to_owned());
        }
    }
    let mut probe = at.clone();
    if probe.take("(") {
        // A note, such as what the error means.
        let rest = probe.rest();
        if let Some(end) = rest.find(')') {
            probe.advance(end + 1);
            *at = probe;
        }
    }
    Ok(Call { name, args, result, error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Options, Packet};
    use acklab_host::segment::{TcpOption, flag};

    fn only(text: &str) -> Event {
        let script = parse(text).unwrap();
        assert_eq!(script.events.len(), 1, "{text}");
        script.events.into_iter().next().unwrap()
    }

    fn packet(text: &str) -> Packet {
        match only(text).kind {
            Kind::Packet(packet) => packet,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn times_are_absolute_relative_ranged_wildcard_and_blocking() {
        let at = |relative, from, to| When::At { relative, from, to };
        for (text, when, until) in [
            ("0 `true`", at(false, 0, None), None),
            ("+.1 `true`", at(true, 100_000, None), None),
            ("+.01~+.05 `true`", at(true, 10_000, Some(50_000)), None),
            ("1.5~2 `true`", at(false, 1_500_000, Some(2_000_000)), None),
            ("* `true`", When::Any, None),
            ("0.1...0.25 close(3) = 0", at(false, 100_000, None), Some(250_000)),
            ("+0...0.2 close(3) = 0", at(true, 0, None), Some(200_000)),
        ] {
            if matches!(when, When::At { relative: false, .. }) && text.contains('`') {
                let event =
                    only(&format!("0 close(3) = 0\n{text}").replace("0 close(3) = 0\n", ""));
                assert_eq!((event.when, event.until), (when, until), "{text}");
            } else {
                let event = only(text);
                assert_eq!((event.when, event.until), (when, until), "{text}");
            }
        }
    }

    #[test]
    fn packets_have_flags_ranges_and_options_in_order() {
        let syn = packet("0 < S 0:0(0) win 32792 <mss 1000,sackOK,TS val 100 ecr 0,nop,wscale 7>");
        assert_eq!((syn.flags, syn.window, syn.ack), (flag::SYN, Some(32_792), None));
        let Options::List(list) = &syn.options else { panic!("{syn:?}") };
        assert_eq!(list[2], TcpOption::Stamp(100, 0));
        let data = packet("+0 > [ect0] P. 1:1001(1000) ack 1 win * <...>");
        assert_eq!(data.range, (1, 1001, 1000));
        assert_eq!((data.ecn, data.window, data.options), (Some(vec![2]), None, Options::Any));
        let ace = packet("+0 < [ce] P.5 1:2(1) ack 1 <ECN e1b 1 ceb 0 e0b 1>");
        assert_eq!(ace.flags, flag::PSH | flag::ACK | flag::AE | flag::ECE);
        assert!(parse("+0 > . 1:1001(999) ack 1").is_err());
    }

    #[test]
    fn calls_have_values_of_every_kind() {
        let event = only(
            "+0 sendmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 1000}], msg_flags=0}, \
             MSG_MORE|MSG_EOR) = -1 EAGAIN (Resource temporarily unavailable)",
        );
        let Kind::Call(call) = event.kind else { panic!() };
        assert_eq!(call.error.as_deref(), Some("EAGAIN"));
        let iov = call.args[1].field("msg_iov").and_then(|list| list.nth(0)).unwrap();
        assert_eq!(iov.nth(1), Some(&Value::Int(1000)));
        assert!(matches!(&call.args[2], Value::Or(flags) if flags.len() == 2));
    }

    #[test]
    fn names_stand_for_texts_words_and_commands() {
        let head =
            "--define=CC=\"new reno\"\n--define=LEVEL=SOL_TCP\n--define=DO=`sysctl -q a=1`\n";
        let script =
            parse(&format!("{head}0 setsockopt(4, LEVEL, TCP_CONGESTION, CC, 8) = 0\n+0 DO\n"));
        let script = script.unwrap();
        let Kind::Call(call) = &script.events[0].kind else { panic!() };
        assert_eq!(call.args[1], Value::Name("SOL_TCP".to_owned()));
        assert_eq!(call.args[3], Value::Text("new reno".to_owned()));
        assert_eq!(script.events[1].kind, Kind::Command("sysctl -q a=1".to_owned()));
    }

    #[test]
    fn a_backquote_behind_a_backslash_is_the_shells() {
        let script = parse("0 `echo \\`x\\` > /tmp/y; echo \\\\`\n+0 close(3) = 0\n").unwrap();
        let whole = "echo \\`x\\` > /tmp/y; echo \\\\".to_owned();
        assert_eq!(script.events[0].kind, Kind::Command(whole));
        assert_eq!(script.events.len(), 2);
        assert!(parse("0 `echo \\`\n").is_err());
    }

    #[test]
    fn comments_options_and_commands_stand_anywhere_before() {
        let script = parse(
            "// a note\n--tolerance_usecs=10000\n--mss 1000\n/* more */\n`sysctl -q net.ipv4.tcp_sack=0\n`\n\
             # another\n0 close(3) = 0\n+0 %{ assert 1 == 1 }%\n",
        )
        .unwrap();
        assert_eq!(script.options[1], ("mss".to_owned(), "1000".to_owned()));
        assert_eq!((script.setup.len(), script.events.len()), (1, 2));
        assert_eq!(script.events[1].line, 9);
    }
}
