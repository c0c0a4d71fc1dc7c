//! The code that a receiver shows and a sender takes: where the receiver is, and what both have to know.

use std::fmt;
use std::net::SocketAddr;

use acklab_net::rudp::passphrase::Passphrase;

use crate::transfer as lines;

/// `PASSPHRASE@ADDR:PORT[,ADDR:PORT...]`.
#[derive(Debug)]
pub(crate) struct Invitation {
    pub(crate) passphrase: Passphrase,
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Invitation {
    /// A code, unless it is just an address; an error where it is meant to be one and is not.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, String> {
        let Some((passphrase, addresses)) = text.rsplit_once('@') else { return Ok(None) };
        let passphrase = passphrase.parse().map_err(|error| format!("{error}"))?;
        let addresses =
            addresses.split(',').map(lines::addresses).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Self { passphrase, addresses: addresses.concat() }))
    }
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        write!(f, "{}@{}", self.passphrase.as_str(), addresses.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_it_is_shown() {
        for text in ["kadu-fota-bili-runo@192.0.2.7:9000,[2001:db8::7]:9001", "a@b@127.0.0.1:9"] {
            let code = Invitation::read(text).expect("good").expect("a code");
            assert_eq!(code.to_string(), text);
        }
        assert!(Invitation::read("host.example:9000").is_ok_and(|code| code.is_none()));
        for text in ["@127.0.0.1:9", "x@", "x@127.0.0.1", "x@127.0.0.1:9,"] {
            assert!(Invitation::read(text).is_err(), "{text}");
        }
    }
}
