//! The operating systems whose TCP is imitated, by name.

use std::fmt;
use std::str::FromStr;

/// A system whose defaults [`super::Config::for_system`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum System {
    /// Linux 4.15 to 6.x.
    Linux,
    /// FreeBSD up to 12.1: delayed ACK 100 ms.
    FreeBsd121,
    /// FreeBSD 12.2 and later: delayed ACK 40 ms.
    FreeBsd122,
    /// Windows XP to 7, 200 ms after the segment.
    Windows7,
    /// Windows 2000 to 7 with a free-running tick: 2 ticks of 100 ms, so 100 to 200 ms.
    Windows7Tick,
    /// Windows 10, Server 2019 and later: 40 ms.
    Windows10,
    /// QNX Neutrino 7.0 (io-pkt, of NetBSD descent): 200 ms.
    Qnx70,
    /// macOS.
    MacOs,
}

impl System {
    /// All of them with their names, in the order of the documentation.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Linux, "linux"),
        (Self::FreeBsd121, "freebsd-12.1"),
        (Self::FreeBsd122, "freebsd-12.2"),
        (Self::Windows7, "windows-7"),
        (Self::Windows7Tick, "windows-7-tick"),
        (Self::Windows10, "windows-10"),
        (Self::Qnx70, "qnx-7.0"),
        (Self::MacOs, "macos"),
    ];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(system, _)| *system == self).map_or("", |&(_, name)| name)
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No system of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSystem(String);

impl fmt::Display for UnknownSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown system \"{}\"; known are", self.0)?;
        for (i, (_, name)) in System::ALL.iter().enumerate() {
            write!(f, "{} {name}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownSystem {}

impl FromStr for System {
    type Err = UnknownSystem;

    fn from_str(text: &str) -> Result<Self, UnknownSystem> {
        Self::ALL
            .iter()
            .find(|(_, name)| *name == text)
            .map(|&(system, _)| system)
            .ok_or_else(|| UnknownSystem(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_the_system_they_name() {
        for (system, name) in System::ALL {
            assert_eq!(name.parse(), Ok(system));
            assert_eq!(system.to_string(), name);
        }
        let message = "beos".parse::<System>().unwrap_err().to_string();
        assert!(message.contains("beos") && message.contains("qnx-7.0"), "{message}");
    }
}
