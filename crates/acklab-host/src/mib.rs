//! Counters of a host, named as Linux names those of `/proc/net/snmp` and `/proc/net/netstat` (its
//! `Documentation/networking/snmp_counter.rst`).
//!
//! What depends on how a kernel is built and not on TCP is not counted: its fast path, locks and backlogs, copies, pages.

use crate::tcp::Tcp;

macro_rules! mibs {
    ($($mib:ident)*) => {
        /// A counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the names are Linux's, whose documentation has them")]
        pub enum Mib { $($mib),* }

        impl Mib {
            /// All of them, in their order.
            pub const ALL: [Self; [$(stringify!($mib)),*].len()] = [$(Self::$mib),*];

            /// As nstat(8) shows it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$mib => mibs!(@name $mib)),* }
            }
        }
    };
    (@name ActiveOpens) => { "TcpActiveOpens" };
    (@name PassiveOpens) => { "TcpPassiveOpens" };
    (@name AttemptFails) => { "TcpAttemptFails" };
    (@name EstabResets) => { "TcpEstabResets" };
    (@name InSegs) => { "TcpInSegs" };
    (@name OutSegs) => { "TcpOutSegs" };
    (@name RetransSegs) => { "TcpRetransSegs" };
    (@name OutRsts) => { "TcpOutRsts" };
    (@name TimeoutRehash) => { "TcpExtTcpTimeoutRehash" };
    (@name $mib:ident) => { concat!("TcpExt", stringify!($mib)) };
}

mibs! {
    ActiveOpens PassiveOpens AttemptFails EstabResets InSegs OutSegs RetransSegs OutRsts
    SyncookiesSent SyncookiesRecv SyncookiesFailed EmbryonicRsts PruneCalled RcvPruned OfoPruned OutOfWindowIcmps
    TW TWKilled PAWSActive PAWSEstab PAWSOldAck PAWSTimewait BeyondWindow TSEcrRejected
    DelayedACKs DelayedACKLost ListenOverflows ListenDrops
    TCPRenoRecovery TCPSackRecovery TCPSACKReneging TCPSACKReorder TCPRenoReorder TCPTSReorder
    TCPFullUndo TCPPartialUndo TCPDSACKUndo TCPLossUndo TCPSpuriousRTOs
    TCPLostRetransmit TCPRenoFailures TCPSackFailures TCPLossFailures TCPRenoRecoveryFail TCPSackRecoveryFail
    TCPFastRetrans TCPSlowStartRetrans TCPTimeouts TCPLossProbes TCPLossProbeRecovery TCPSynRetrans
    TCPDSACKOldSent TCPDSACKOfoSent TCPDSACKRecv TCPDSACKOfoRecv TCPDSACKRecvSegs TCPDSACKIgnoredDubious
    TCPDSACKIgnoredOld TCPDSACKIgnoredNoUndo TCPSACKDiscard
    TCPAbortOnData TCPAbortOnClose TCPAbortOnTimeout TCPAbortOnLinger
    TCPDeferAcceptDrop TCPReqQFullDoCookies TCPReqQFullDrop
    TCPRcvCoalesce TCPOFOQueue TCPOFODrop TCPOFOMerge TCPZeroWindowDrop TCPRcvQDrop
    TCPChallengeACK TCPSYNChallenge TCPACKSkippedSynRecv TCPACKSkippedPAWS TCPACKSkippedSeq
    TCPACKSkippedFinWait2 TCPACKSkippedTimeWait TCPACKSkippedChallenge
    TCPFastOpenActive TCPFastOpenActiveFail TCPFastOpenPassive TCPFastOpenPassiveFail TCPFastOpenListenOverflow
    TCPFastOpenCookieReqd
    TCPHystartTrainDetect TCPHystartTrainCwnd TCPHystartDelayDetect TCPHystartDelayCwnd
    TCPFromZeroWindowAdv TCPToZeroWindowAdv TCPWantZeroWindowAdv
    TCPOrigDataSent TCPWinProbe TCPKeepAlive TCPMTUPFail TCPMTUPSuccess TCPDelivered TCPDeliveredCE
    TCPAckCompressed TimeoutRehash TCPMinTTLDrop
}

impl Mib {
    /// The counter of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mib| mib.name() == name)
    }
}

/// A host's counters.
#[derive(Clone, Debug)]
pub struct Mibs([u64; Mib::ALL.len()]);

impl Default for Mibs {
    fn default() -> Self {
        Self([0; Mib::ALL.len()])
    }
}

impl Mibs {
    /// A counter's value.
    pub const fn of(&self, mib: Mib) -> u64 {
        self.0[mib as usize]
    }

    pub(crate) const fn count(&mut self, mib: Mib) {
        self.0[mib as usize] += 1;
    }

    /// Takes what a connection counted since the last time.
    pub(crate) fn take(&mut self, tcp: &mut Tcp) {
        for (mib, times) in tcp.count.mibs.drain(..) {
            self.0[mib as usize] += u64::from(times);
        }
    }
}

impl Tcp {
    #[inline(never)]
    pub(crate) fn tally(&mut self, mib: Mib) {
        self.count.mibs.push((mib, 1));
    }

    #[inline(never)]
    pub(crate) fn tally_all(&mut self, mib: Mib, times: u32) {
        if times > 0 {
            self.count.mibs.push((mib, times));
        }
    }
}
