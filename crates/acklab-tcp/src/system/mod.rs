//! The operating systems whose TCP is imitated, one line each: documentation, name, and the defaults of
//! a connection. A new one is a file of this folder that knows those defaults, and its line.

use acklab_core::ack::{Profile, macos};
use acklab_core::time::Span;

use crate::config::{Config, InitialWindow, Rto, Window};
use crate::nagle::Nagle;

/// The systems as words, with what they stand for.
macro_rules! systems {
    ($($(#[doc = $doc:literal])* $name:literal $Variant:ident => $config:expr;)+) => {
        acklab_core::words! {
            /// A system whose defaults are known.
            pub enum System {
                $($(#[doc = $doc])* $Variant = $name,)+
            }
        }

        impl System {
            /// What it is, and where its delayed ACK is from.
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Self::$Variant => concat!($($doc),*).trim_ascii_start(),)+
                }
            }

            /// The defaults of its connections (an example is at [`Config`]). Sizes that a system tunes while running stand at the
            /// ceiling of its tuning.
            pub fn config(self) -> Config {
                match self {
                    $(Self::$Variant => $config,)+
                }
            }
        }
    };
}

systems! {
    /// Linux 6.18 segment by segment, carried by acklab-host (`stack = stream`: as acklab-tcp imitates it).
    "linux" Linux => Config::segments();
    /// FreeBSD up to 12.1: delayed ACK 100 ms, hz/10 (tcp_timer.h before r360010).
    "freebsd-12.1" FreeBsd121 => Config::freebsd(every_second(100));
    /// FreeBSD 12.2 and later: delayed ACK 40 ms (r360510).
    "freebsd-12.2" FreeBsd122 => Config::freebsd(every_second(40));
    /// Windows XP to 7, 200 ms after the segment (KB 328890).
    "windows-7" Windows7 => Config::windows_7(every_second(200));
    /// Windows 2000 to 7 with a free-running tick: TcpDelAckTicks, 2 ticks of 100 ms, so 100 to 200 ms.
    "windows-7-tick" Windows7Tick => {
        Config::windows_7(Profile::tick(2, Span::from_millis(100), 2))
    };
    /// Windows 10, Server 2019 and later: 40 ms (the Internet template: DelayedAckTimeout 40, frequency 2).
    "windows-10" Windows10 => Config {
        // The Internet template: MinRto 300, IW 10.
        window: Window { initial: InitialWindow::Rfc6928, ..Window::BSD },
        rto: Rto { initial: Span::from_secs(1), ..Rto::WINDOWS_7 },
        ..Config::windows_7(every_second(40))
    };
    /// QNX Neutrino 7.0 (io-pkt, of NetBSD descent): 200 ms, TCP_DELACK_TICKS = hz/5.
    "qnx-7.0" Qnx70 => Config::qnx(every_second(200));
    /// macOS: 100 ms, PSH at once, eight segments in a stream.
    "macos" MacOs => Config {
        // TF_MAXSEGSNT of xnu: after a full segment the tail leaves. Minshall's rule, but for a small
        // segment that was outstanding before the full one.
        nagle: Nagle::Minshall,
        send_buffer: 4 << 20,
        receive_buffer: 4 << 20,
        ..Config::freebsd(Profile::MacOs(macos::Options::default()))
    };
}

/// Every second segment, or after so many milliseconds.
const fn every_second(millis: u64) -> Profile {
    Profile::delayed(2, Span::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use acklab_core::options::Word;

    use super::*;

    #[test]
    fn names_read_back_as_the_system_they_name() {
        for (system, name) in System::ALL.iter().zip(System::NAMES) {
            assert_eq!(name.parse(), Ok(*system));
            assert_eq!(system.to_string(), *name);
        }
        let message = "beos".parse::<System>().unwrap_err().to_string();
        assert!(message.contains("beos") && message.contains("qnx-7.0"), "{message}");
    }
}
