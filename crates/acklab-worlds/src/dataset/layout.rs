//! Names of folders and files, as the published data set has them.

use std::fmt;

use acklab_tcp::System;

/// Runs of a case.
pub const RUNS: usize = 10;

/// A case: `<ReceiverOS>-<NagleOn|NagleOff>-<RTT>ms`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CaseName {
    /// As the folder says it.
    pub receiver: String,
    /// Nagle's algorithm at the sender.
    pub nagle: bool,
    /// Round-trip propagation delay, ns.
    pub rtt: u64,
}

/// The published receivers, in their article's order: the folder's word, words that may stand in its place, and the
/// system that acklab has for it.
const PUBLISHED: [(&str, &[&str], System); 4] = [
    ("QNX", &["neutrino"], System::Qnx70),
    ("Windows", &[], System::Windows7),
    ("Linux", &["ubuntu"], System::Linux),
    ("FreeBSD", &[], System::FreeBsd121),
];

impl CaseName {
    /// The case of a receiver that acklab calls `system`.
    pub fn new(system: &str, nagle: bool, rtt: u64) -> Self {
        let published = PUBLISHED.iter().find(|(_, _, own)| system.parse() == Ok(*own));
        let receiver = published.map_or(system, |(word, ..)| word).to_owned();
        Self { receiver, nagle, rtt }
    }

    /// The case of a folder; the reason where it is none.
    pub fn parse(folder: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{folder:?} is no <ReceiverOS>-<NagleOn|NagleOff>-<RTT>ms such as Windows-NagleOff-30ms"
            )
        };
        let (rest, rtt) = folder.rsplit_once('-').ok_or_else(wrong)?;
        let (receiver, nagle) = rest.rsplit_once('-').ok_or_else(wrong)?;
        let nagle = match nagle {
            "NagleOn" => true,
            "NagleOff" => false,
            _ => return Err(wrong()),
        };
        let rtt: f64 = rtt.strip_suffix("ms").and_then(|ms| ms.parse().ok()).ok_or_else(wrong)?;
        if receiver.is_empty() || !(0.0..=1e9).contains(&rtt) {
            return Err(wrong());
        }
        Ok(Self { receiver: receiver.to_owned(), nagle, rtt: (rtt * 1e6).round() as u64 })
    }

    /// What acklab calls the receiver, where it knows it.
    pub fn system(&self) -> Option<System> {
        let lower = self.receiver.to_lowercase();
        let of = |(word, others, system): &(&str, &[&str], System)| {
            let named = lower.contains(&word.to_lowercase());
            (named || others.iter().any(|word| lower.contains(word))).then_some(*system)
        };
        self.receiver.parse().ok().or_else(|| PUBLISHED.iter().find_map(of))
    }
}

impl fmt::Display for CaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nagle = if self.nagle { "NagleOn" } else { "NagleOff" };
        write!(f, "{}-{nagle}-{}ms", self.receiver, self.rtt as f64 / 1e6)
    }
}

/// What a file of a case holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// `ID Ts`: when the application made each message, s.
    SenderOut(usize),
    /// `Ts Src.Port Dst.Port [Flags] length n`: each segment that left.
    Sniffer(usize),
    /// `Ts Len`: when each message left, s; bytes.
    SnifferTimestamp(usize),
    /// `ID Ts Ts Len Delay`: both, and the difference in us.
    AppNetDelay(usize),
    /// `ID Delay` of all runs, us.
    All,
    /// `Delay CDF`: ms, and the share of messages that waited no longer.
    Cdf,
}

impl File {
    /// The files of a case of `runs` runs.
    pub fn of_case(runs: usize) -> Vec<Self> {
        let of_runs = [Self::SenderOut, Self::Sniffer, Self::SnifferTimestamp, Self::AppNetDelay];
        let mut files: Vec<Self> = of_runs.iter().flat_map(|kind| (0..runs).map(kind)).collect();
        files.extend([Self::All, Self::Cdf]);
        files
    }

    /// Its name in the case's folder.
    pub fn name(self) -> String {
        match self {
            Self::SenderOut(run) => format!("Sender-out-{run}.txt"),
            Self::Sniffer(run) => format!("Sniffer-{run}.txt"),
            Self::SnifferTimestamp(run) => format!("SnifferTimestamp-{run}.txt"),
            Self::AppNetDelay(run) => format!("App-Net-Delay-Sniffer-{run}.txt"),
            Self::All => "App-Net-Delay-ALL.txt".to_owned(),
            Self::Cdf => "CDF.txt".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_published_and_read_back() {
        for (system, nagle, rtt_ms, folder) in [
            ("windows-7", false, 30.0, "Windows-NagleOff-30ms"),
            ("qnx-7.0", true, 1000.0, "QNX-NagleOn-1000ms"),
            ("linux", true, 10.0, "Linux-NagleOn-10ms"),
            ("freebsd-12.1", true, 0.5, "FreeBSD-NagleOn-0.5ms"),
            ("windows-10", true, 10.0, "windows-10-NagleOn-10ms"),
        ] {
            let name = CaseName::new(system, nagle, (rtt_ms * 1e6) as u64);
            assert_eq!(name.to_string(), folder);
            let read = CaseName::parse(folder).unwrap();
            assert_eq!(read, name);
            assert_eq!(read.system(), system.parse().ok(), "{folder}");
        }
        assert_eq!(CaseName::parse("Ubuntu-NagleOn-10ms").unwrap().system(), Some(System::Linux));
        for folder in
            ["Windows", "Windows-NagleOn", "Windows-Nagle-30ms", "-NagleOn-3ms", "X-NagleOn-30s"]
        {
            assert!(CaseName::parse(folder).is_err(), "{folder}");
        }
    }

    #[test]
    fn a_case_has_42_files() {
        assert_eq!(File::of_case(RUNS).len(), 42);
    }
}
