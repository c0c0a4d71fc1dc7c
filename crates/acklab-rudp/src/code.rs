//! Why a connection ended or was refused (docs/rudp.md section 3, "Close, idle, reset").

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $value:literal, $text:literal;)+) => {
        /// A code of CLOSE and REFUSE.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $variant = $value,)+
        }

        impl Code {
            /// The code of that number on the wire.
            pub const fn from_wire(value: u64) -> Option<Self> {
                match value {
                    $($value => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for Code {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $text,)+
                })
            }
        }
    };
}

codes! {
    /// Everything was delivered.
    Done = 0, "done";
    /// A fault of the program.
    Internal = 1, "internal error";
    /// The peer speaks another version.
    Version = 2, "the peer speaks another version of the protocol";
    /// Passphrase offered and keys wanted, or the like.
    Mode = 3, "the two ends were started with different kinds of secret";
    /// The passphrase or key does not fit.
    WrongSecret = 4, "wrong passphrase or key";
    /// The client's key is not among the known peers.
    UnknownPeer = 5, "the peer's key is not known here";
    /// No room for another connection.
    Busy = 6, "the peer has no room for another connection";
    /// A frame could not be read.
    FrameEncoding = 7, "a frame could not be read";
    /// A frame that is well formed and not allowed.
    Protocol = 8, "the peer broke a rule of the protocol";
    /// More data than was granted.
    FlowControl = 9, "the peer sent more than it was granted";
    /// Too many packets that do not authenticate.
    AeadLimit = 10, "too many forged packets";
    /// Nothing was heard for the idle time.
    Idle = 11, "nothing was heard from the peer";
    /// The application refused.
    Refused = 12, "refused by the peer";
    /// A user stopped it.
    Stopped = 13, "stopped by the peer's user";
    /// As many wrong guesses of the passphrase were made as the server allows.
    Spent = 14, "wrong guesses have used up the passphrase: the receiver needs another one";
}
