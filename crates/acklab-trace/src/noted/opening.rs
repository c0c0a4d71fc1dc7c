//! Protocols that show themselves by how a connection or a message begins, and have no header of a fixed form.
//!
//! A rule is believed at its first fit, so it asks for what hardly anything else sends at the start of a segment. A port
//! proves nothing and is not looked at here. Where the header of a message ends is known of HTTP alone.

/// How one protocol begins.
struct Opening {
    /// The name used in results.
    name: &'static str,
    /// Whether a segment of so many bytes, of which these were captured, begins so.
    fits: fn(u32, &[u8]) -> bool,
    /// The least that fits in a segment of so many bytes, for captures without their content.
    least: fn(u32) -> Vec<u8>,
}

/// Every one of them.
static OPENINGS: [Opening; 13] = [
    // RFC 6455 section 4.2.2: what follows is no HTTP.
    Opening { name: "websocket", fits: switches, least: |_| b"HTTP/1.1 101 ".into() },
    // RFC 9112 sections 3 and 4; RTSP and SIP have the same lines (RFC 2326, RFC 3261 section 7).
    Opening { name: HTTP, fits: |_, b| line(b, b"HTTP/1."), least: |_| b"HTTP/1.1 200 ".into() },
    Opening { name: "rtsp", fits: |_, b| line(b, b"RTSP/1."), least: |_| b"RTSP/1.0 200 ".into() },
    Opening { name: "sip", fits: |_, b| line(b, b"SIP/2."), least: |_| b"SIP/2.0 200 ".into() },
    // RFC 9113 section 3.4.
    Opening { name: "http2", fits: |_, b| b.starts_with(PREFACE), least: |_| PREFACE.into() },
    // The Redis protocol: a command is an array of bulk strings.
    Opening { name: "redis", fits: redis, least: |_| b"*1\r\n$1\r\nx".into() },
    // RFC 4253 section 4.2.
    Opening { name: "ssh", fits: |_, b| b.starts_with(b"SSH-2.0-"), least: |_| b"SSH-2.0-".into() },
    // PostgreSQL, message formats: StartupMessage of protocol 3, SSLRequest, GSSENCRequest.
    Opening { name: "postgresql", fits: postgresql, least: postgresql_least },
    // MySQL, Protocol::HandshakeV10.
    Opening { name: "mysql", fits: mysql, least: mysql_least },
    // AMQP 0-9-1 section 4.2.2, AMQP 1.0 section 2.2.
    Opening { name: "amqp", fits: amqp, least: |_| b"AMQP\0\0\x09\x01".into() },
    // FIX session layer: BeginString and BodyLength come first.
    Opening { name: "fix", fits: fix, least: |_| b"8=FIX.4.4\x019=0\x01".into() },
    // memcached, protocol.txt: storage commands, and values.
    Opening { name: "memcached", fits: memcached, least: |_| b"VALUE x 0 0\r\n".into() },
    // NATS: the server's first line.
    Opening {
        name: "nats",
        fits: |_, b| b.starts_with(b"INFO {\""),
        least: |_| b"INFO {\"".into(),
    },
];

/// Watches one direction for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Openings {
    found: Option<&'static str>,
    /// Segments looked at.
    seen: u32,
    /// The segment before was a header of HTTP and nothing else.
    header_alone: bool,
    /// Messages, and those whose header came in a segment without their body.
    messages: u64,
    apart: u64,
}

impl Openings {
    /// A segment of new data in order.
    pub(crate) fn on_data(&mut self, len: u32, captured: &[u8]) {
        if self.found.is_none() && self.seen < SEEN_MAX {
            self.seen += 1;
            self.found = find(len, captured).map(|opening| opening.name);
        }
        if self.found == Some(HTTP) {
            let begins = line(captured, b"HTTP/1.");
            self.messages += u64::from(begins);
            self.apart += u64::from(self.header_alone && !begins);
            self.header_alone = begins && is_header(len, captured);
        }
    }

    /// The protocol, once it showed itself.
    pub(crate) fn protocol(&self) -> Option<&'static str> {
        self.found
    }

    /// Whether the headers of most messages came apart from their bodies.
    pub(crate) fn has_headers_apart(&self) -> bool {
        self.apart * 2 > self.messages
    }
}

/// The least of a segment's payload that still shows its protocol; empty where it shows none.
pub(crate) fn bare(len: u32, captured: &[u8]) -> Vec<u8> {
    let Some(opening) = find(len, captured) else { return Vec::new() };
    let mut least = (opening.least)(len);
    if opening.name == HTTP && is_header(len, captured) {
        least.resize(least.len().max(captured.len() - BLANK_LINE.len()), b'x');
        least.extend(BLANK_LINE);
    }
    if least.len() <= captured.len() { least } else { Vec::new() }
}

/// Whether the segment ends where a header does.
fn is_header(len: u32, captured: &[u8]) -> bool {
    captured.len() == len as usize && captured.ends_with(BLANK_LINE)
}

fn find(len: u32, captured: &[u8]) -> Option<&'static Opening> {
    OPENINGS.iter().find(|opening| (opening.fits)(len, captured))
}

fn switches(_len: u32, b: &[u8]) -> bool {
    b.starts_with(b"HTTP/1.1 101 ")
}

/// `METHOD target VERSION`, or `VERSION status`.
fn line(b: &[u8], version: &[u8]) -> bool {
    if let Some(rest) = b.strip_prefix(version) {
        return matches!(rest, [minor, b' ', class @ b'1'..=b'6', tens, ones, b' ' | b'\r', ..]
            if [minor, class, tens, ones].iter().all(|digit| digit.is_ascii_digit()));
    }
    let first = b.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = first.split(|byte| *byte == b' ');
    let (method, target, last) = (words.next(), words.next(), words.next());
    let graphic = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_graphic);
    method.is_some_and(|word| {
        (3..=16).contains(&word.len()) && word.iter().all(|c| c.is_ascii_uppercase() || *c == b'_')
    }) && target.is_some_and(graphic)
        && last.is_some_and(|word| word.len() == version.len() + 1 && word.starts_with(version))
        && words.next().is_none()
}

/// `*2\r\n$4\r\nLLEN...`.
fn redis(_len: u32, b: &[u8]) -> bool {
    let number = |b: &[u8]| b.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let Some(rest) = b.strip_prefix(b"*") else { return false };
    let Some(rest) = rest.get(number(rest)..).filter(|_| (1..=7).contains(&number(rest))) else {
        return false;
    };
    let Some(rest) = rest.strip_prefix(b"\r\n$") else { return false };
    (1..=9).contains(&number(rest)) && rest[number(rest)..].starts_with(b"\r\n")
}

fn postgresql(len: u32, b: &[u8]) -> bool {
    let word = |at: usize| Some(u32::from_be_bytes(b.get(at..at + 4)?.try_into().ok()?));
    let [length, code] = [word(0), word(4)];
    length == Some(len)
        && match code {
            Some(0x0003_0000 | 0x0003_0002) => len > 8,
            Some(80_877_103 | 80_877_104) => len == 8,
            _ => false,
        }
}

fn postgresql_least(len: u32) -> Vec<u8> {
    let code: u32 = if len == 8 { 80_877_103 } else { 0x0003_0000 };
    [len.to_be_bytes(), code.to_be_bytes()].concat()
}

fn mysql(len: u32, b: &[u8]) -> bool {
    let [l0, l1, l2, 0, 10, version @ ..] = b else { return false };
    let version = version.split(|byte| *byte == 0).next().unwrap_or_default();
    let digits = version.iter().take_while(|byte| byte.is_ascii_digit()).count();
    u32::from_le_bytes([*l0, *l1, *l2, 0]).checked_add(4) == Some(len)
        && (1..=2).contains(&digits)
        && version.get(digits) == Some(&b'.')
        && version.iter().all(u8::is_ascii_graphic)
}

fn mysql_least(len: u32) -> Vec<u8> {
    let [l0, l1, l2, _] = len.saturating_sub(4).to_le_bytes();
    vec![l0, l1, l2, 0, 10, b'8', b'.', 0]
}

fn amqp(len: u32, b: &[u8]) -> bool {
    len == 8
        && matches!(
            b,
            [b'A', b'M', b'Q', b'P', 0, 0, 9, 0 | 1] | [b'A', b'M', b'Q', b'P', 0..=3, 1, 0, 0]
        )
}

fn fix(_len: u32, b: &[u8]) -> bool {
    let mut fields = b.split(|byte| *byte == 1);
    let (version, length) = (fields.next(), fields.next());
    let digits = |b: &[u8]| !b.is_empty() && b.iter().all(u8::is_ascii_digit);
    version.is_some_and(|field| field.starts_with(b"8=FIX"))
        && length.and_then(|field| field.strip_prefix(b"9=")).is_some_and(digits)
        && fields.next().is_some()
}

fn memcached(_len: u32, b: &[u8]) -> bool {
    let Some(first) = b.windows(2).position(|two| two == b"\r\n").map(|end| &b[..end]) else {
        return false;
    };
    let words: Vec<&[u8]> = first.split(|byte| *byte == b' ').collect();
    let numbers = |words: &[&[u8]]| {
        words.iter().all(|word| !word.is_empty() && word.iter().all(u8::is_ascii_digit))
    };
    match words.as_slice() {
        [b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas", key, rest @ ..] => {
            !key.is_empty() && rest.len() >= 3 && numbers(&rest[..3])
        }
        [b"VALUE", key, rest @ ..] => !key.is_empty() && rest.len() >= 2 && numbers(rest),
        _ => false,
    }
}

/// The name that more is known of.
const HTTP: &str = "http";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const BLANK_LINE: &[u8] = b"\r\n\r\n";
/// So many segments without any of it, and none is looked for.
const SEEN_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(payload: &[u8]) -> Option<&'static str> {
        find(payload.len() as u32, payload).map(|opening| opening.name)
    }

    #[test]
    fn what_the_specifications_show_is_recognised() {
        let check = |payload: &[u8], expect| {
            assert_eq!(name(payload), Some(expect), "{}", String::from_utf8_lossy(payload));
        };
        // RFC 9112 section 2.1, RFC 6455 section 1.2, RFC 2326 section 10.2.
        check(b"GET /hello.txt HTTP/1.1\r\nUser-Agent: curl/7.64.1\r\n", "http");
        check(b"HTTP/1.1 200 OK\r\nDate: Mon, 27 Jul 2009 12:28:53 GMT\r\n", "http");
        check(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n", "websocket");
        check(b"DESCRIBE rtsp://server.example.com/fizzle/foo RTSP/1.0\r\nCSeq: 312\r\n", "rtsp");
        check(b"INVITE sip:bob@biloxi.com SIP/2.0\r\n", "sip");
        check(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0", "http2");
        // redis.io, RESP protocol description.
        check(b"*2\r\n$4\r\nLLEN\r\n$6\r\nmylist\r\n", "redis");
        check(b"SSH-2.0-billsSSH_3.6.3q3\r\n", "ssh");
        let mut startup = vec![0, 0, 0, 17, 0, 3, 0, 0];
        startup.extend(b"user\0me\0\0");
        check(&startup, "postgresql");
        check(&[0, 0, 0, 8, 4, 210, 22, 47], "postgresql");
        let mut greeting = vec![14, 0, 0, 0, 10];
        greeting.extend(b"8.0.36\0 and 5");
        check(&greeting, "mysql");
        check(b"AMQP\0\0\x09\x01", "amqp");
        check(b"8=FIX.4.2\x019=178\x0135=8\x01", "fix");
        check(b"set tutorialspoint 0 900 9\r\nmemcached\r\n", "memcached");
        check(b"INFO {\"server_id\":\"Zk0GQ3JBSrg3oyxCRRlE09\"", "nats");
    }

    #[test]
    fn what_only_resembles_them_is_nothing() {
        for payload in [
            &b"GET /hello.txt"[..],
            b"Get /a HTTP/1.1\r\n",
            b"GET /a b HTTP/1.1\r\n",
            b"HTTP/1.1 is a protocol",
            b"*2 items, $4 each\r\n",
            b"*\r\n$4\r\n",
            b"+OK\r\n",
            &[0, 0, 0, 9, 4, 210, 22, 47],
            b"8=FIX.4.2 is a version",
            b"set the table for 6\r\n",
            b"AMQP\0\0\x09\x01 and more",
            b"",
        ] {
            assert_eq!(name(payload), None, "{}", String::from_utf8_lossy(payload));
        }
    }

    #[test]
    fn what_is_left_of_a_segment_shows_the_same_protocol() {
        for opening in &OPENINGS {
            for len in [8_u32, 90] {
                let least = (opening.least)(len);
                if (opening.name == "amqp" && len != 8) || (least.len() > len as usize) {
                    continue;
                }
                let found = find(len, &least).map(|found| found.name);
                assert_eq!(found, Some(opening.name), "{len}");
            }
        }
        let request = b"GET /secret HTTP/1.1\r\nCookie: me\r\n\r\n";
        assert_eq!(bare(36, request), b"HTTP/1.1 200 xxxxxxxxxxxxxxxxxxx\r\n\r\n");
        assert_eq!(bare(99, request), b"HTTP/1.1 200 ");
        assert!(bare(5, b"hello").is_empty());
    }

    #[test]
    fn a_header_apart_from_its_body_is_told_from_a_request_without_one() {
        let post = |apart: bool| {
            let mut openings = Openings::default();
            let [head, body] = [&b"POST /w HTTP/1.1\r\nContent-Length: 4\r\n\r\n"[..], b"data"];
            for _ in 0..3 {
                if apart {
                    openings.on_data(head.len() as u32, head);
                    openings.on_data(4, body);
                } else {
                    openings.on_data(head.len() as u32 + 4, &[head, body].concat());
                }
            }
            openings.has_headers_apart()
        };
        assert!(post(true) && !post(false));
        let mut gets = Openings::default();
        for _ in 0..3 {
            gets.on_data(18, b"GET / HTTP/1.1\r\n\r\n");
        }
        assert!(!gets.has_headers_apart());
        assert_eq!(gets.protocol(), Some("http"));
    }
}
