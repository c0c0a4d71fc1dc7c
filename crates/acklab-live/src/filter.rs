//! The packet socket's filter, run by the kernel on every frame: TCP over IPv4 and IPv6 alone, loopback's frames once,
//! perhaps one port, and only the headers of each.
//!
//! Classic BPF (Linux: Documentation/networking/filter.rst), over frames that begin with the IP header. What the
//! filter cannot tell (IPv6 extension headers, fragments) passes; the dissector decides.

use crate::kernel::FilterStep;

/// The filter that keeps so many bytes of each frame of TCP, of `port` alone where there is one.
pub(crate) fn program(port: Option<u16>, keep: u32) -> Vec<FilterStep> {
    let mut steps = Vec::new();
    // Loopback shows each frame twice; what leaves is dropped.
    steps.extend([load(ANCILLARY + HARDWARE_TYPE), unless_equal(ARPHRD_LOOPBACK, 2)]);
    steps.extend([load(ANCILLARY + PACKET_TYPE), if_equal_to(PACKET_OUTGOING, Jump::Drop)]);
    steps.push(load(ANCILLARY + PROTOCOL));
    let v6 = ipv6(port);
    let v4 = ipv4(port);
    steps.push(unless_equal(ETH_P_IP, v4.len() as u8));
    steps.extend(v4);
    steps.push(if_not(ETH_P_IPV6, Jump::Drop));
    steps.extend(v6);
    let last = steps.len();
    steps.extend([answer(keep), answer(0)]);
    steps.iter().enumerate().map(|(at, step)| step.placed(last.saturating_sub(at))).collect()
}

fn ipv4(port: Option<u16>) -> Vec<Step> {
    let mut steps = vec![load_byte(9), if_not(IPPROTO_TCP, Jump::Drop)];
    if let Some(port) = port {
        // A fragment after the first has no ports; X is the length of the header.
        steps.extend([load_half(6), if_bits(0x1fff, Jump::Keep), header_length_to_x()]);
        steps.extend([load_half_at_x(0), if_equal_to(port.into(), Jump::Keep)]);
        steps.extend([load_half_at_x(2), if_equal_to(port.into(), Jump::Keep), go(Jump::Drop)]);
    } else {
        steps.push(go(Jump::Keep));
    }
    steps
}

fn ipv6(port: Option<u16>) -> Vec<Step> {
    let mut steps = vec![load_byte(6)];
    for extension in [0, 43, 44, 51, 60] {
        steps.push(if_equal_to(extension, Jump::Keep));
    }
    steps.push(if_not(IPPROTO_TCP, Jump::Drop));
    if let Some(port) = port {
        steps.extend([load_half(40), if_equal_to(port.into(), Jump::Keep)]);
        steps.extend([load_half(42), if_equal_to(port.into(), Jump::Keep), go(Jump::Drop)]);
    }
    steps
}

/// Where an instruction goes that ends the program.
#[derive(Clone, Copy)]
enum Jump {
    Keep,
    Drop,
}

impl Jump {
    /// Instructions to pass over, where the answer that keeps frames is so far ahead.
    fn over(self, ahead: usize) -> u8 {
        ahead.saturating_sub(1) as u8 + u8::from(matches!(self, Self::Drop))
    }
}

/// An instruction whose way to the end is still open.
#[derive(Clone, Copy)]
enum Step {
    Placed(FilterStep),
    IfTrue(FilterStep, Jump),
    IfFalse(FilterStep, Jump),
    Go(Jump),
}

impl Step {
    fn placed(self, ahead: usize) -> FilterStep {
        match self {
            Self::Placed(step) => step,
            Self::IfTrue(step, jump) => FilterStep { if_true: jump.over(ahead), ..step },
            Self::IfFalse(step, jump) => FilterStep { if_false: jump.over(ahead), ..step },
            Self::Go(jump) => {
                FilterStep { code: 0x05, if_true: 0, if_false: 0, k: jump.over(ahead).into() }
            }
        }
    }
}

fn plain(code: u16, k: u32) -> FilterStep {
    FilterStep { code, if_true: 0, if_false: 0, k }
}

/// `BPF_LD | BPF_W | BPF_ABS`, and likewise.
fn load(k: u32) -> Step {
    Step::Placed(plain(0x20, k))
}

fn load_half(k: u32) -> Step {
    Step::Placed(plain(0x28, k))
}

fn load_byte(k: u32) -> Step {
    Step::Placed(plain(0x30, k))
}

/// `BPF_LD | BPF_H | BPF_IND`.
fn load_half_at_x(k: u32) -> Step {
    Step::Placed(plain(0x48, k))
}

/// `BPF_LDX | BPF_B | BPF_MSH`: four times the low nibble of the first byte.
fn header_length_to_x() -> Step {
    Step::Placed(plain(0xb1, 0))
}

/// `BPF_JMP | BPF_JEQ | BPF_K`.
fn unless_equal(k: u32, over: u8) -> Step {
    Step::Placed(FilterStep { if_false: over, ..plain(0x15, k) })
}

fn if_equal_to(k: u32, jump: Jump) -> Step {
    Step::IfTrue(plain(0x15, k), jump)
}

fn if_not(k: u32, jump: Jump) -> Step {
    Step::IfFalse(plain(0x15, k), jump)
}

/// `BPF_JMP | BPF_JSET | BPF_K`.
fn if_bits(k: u32, jump: Jump) -> Step {
    Step::IfTrue(plain(0x45, k), jump)
}

fn go(jump: Jump) -> Step {
    Step::Go(jump)
}

/// `BPF_RET | BPF_K`.
fn answer(keep: u32) -> Step {
    Step::Placed(plain(0x06, keep))
}

/// `SKF_AD_OFF` and what lies there, linux/filter.h.
const ANCILLARY: u32 = 0xffff_f000;
const PROTOCOL: u32 = 0;
const PACKET_TYPE: u32 = 4;
const HARDWARE_TYPE: u32 = 28;
/// linux/if_arp.h, linux/if_packet.h, linux/if_ether.h, linux/in.h.
const ARPHRD_LOOPBACK: u32 = 772;
const PACKET_OUTGOING: u32 = 4;
const ETH_P_IP: u32 = 0x0800;
const ETH_P_IPV6: u32 = 0x86dd;
const IPPROTO_TCP: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as the filter sees it: what the kernel knows of it, and its bytes from the IP header on.
    struct Seen {
        loopback: bool,
        leaving: bool,
        protocol: u32,
        bytes: Vec<u8>,
    }

    /// Runs the program as the kernel does.
    fn run(program: &[FilterStep], seen: &Seen) -> u32 {
        let (mut a, mut x, mut at) = (0u32, 0u32, 0usize);
        let half = |k: u32| {
            let k = k as usize;
            seen.bytes.get(k..k + 2).map(|b| u32::from(u16::from_be_bytes([b[0], b[1]])))
        };
        loop {
            let FilterStep { code, if_true, if_false, k } = program[at];
            at += 1;
            match code {
                0x20 => {
                    a = match k - ANCILLARY {
                        PROTOCOL => seen.protocol,
                        PACKET_TYPE => u32::from(seen.leaving) * PACKET_OUTGOING,
                        HARDWARE_TYPE => {
                            if seen.loopback {
                                ARPHRD_LOOPBACK
                            } else {
                                1
                            }
                        }
                        other => panic!("{other}"),
                    }
                }
                0x28 => match half(k) {
                    Some(value) => a = value,
                    None => return 0,
                },
                0x48 => match half(x + k) {
                    Some(value) => a = value,
                    None => return 0,
                },
                0x30 => a = u32::from(seen.bytes[k as usize]),
                0xb1 => x = 4 * u32::from(seen.bytes[0] & 0xf),
                0x15 => at += usize::from(if a == k { if_true } else { if_false }),
                0x45 => at += usize::from(if a & k != 0 { if_true } else { if_false }),
                0x05 => at += k as usize,
                0x06 => return k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    fn v4(protocol: u8, ports: [u16; 2]) -> Seen {
        let mut bytes = vec![0x46, 0, 0, 44, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        bytes.extend([0; 12]);
        bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        Seen { loopback: false, leaving: false, protocol: ETH_P_IP, bytes }
    }

    fn v6(next: u8, ports: [u16; 2]) -> Seen {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 20, next, 64];
        bytes.extend([0; 32]);
        bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        Seen { loopback: false, leaving: false, protocol: ETH_P_IPV6, bytes }
    }

    #[test]
    fn tcp_passes_in_both_versions_and_nothing_else_does() {
        let program = program(None, 192);
        for seen in [v4(6, [1, 2]), v6(6, [1, 2]), v6(44, [1, 2])] {
            assert_eq!(run(&program, &seen), 192);
        }
        let arp = Seen { protocol: 0x0806, ..v4(6, [1, 2]) };
        for seen in [v4(17, [1, 2]), v6(17, [1, 2]), arp] {
            assert_eq!(run(&program, &seen), 0);
        }
    }

    #[test]
    fn loopback_is_heard_once_and_other_interfaces_both_ways() {
        let program = program(None, 192);
        let heard =
            |loopback, leaving| run(&program, &Seen { loopback, leaving, ..v4(6, [1, 2]) }) > 0;
        assert!(heard(true, false) && heard(false, false) && heard(false, true));
        assert!(!heard(true, true));
    }

    #[test]
    fn a_port_is_looked_for_at_both_ends_behind_ip_options_too() {
        let program = program(Some(4712), 192);
        for seen in [v4(6, [4712, 9]), v4(6, [9, 4712]), v6(6, [4712, 9]), v6(6, [9, 4712])] {
            assert_eq!(run(&program, &seen), 192);
        }
        for seen in [v4(6, [4713, 9]), v6(6, [9, 4713])] {
            assert_eq!(run(&program, &seen), 0);
        }
        let mut fragment = v4(6, [9, 9]);
        fragment.bytes[7] = 1;
        assert_eq!(run(&program, &fragment), 192);
    }
}
