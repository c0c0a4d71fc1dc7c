//! What `--so_flags` says: words with commas between them.
//!
//! `local=ADDRESS`: where connections come from that were not bound; `mtu=BYTES`; `initcwnd=SEGMENTS`; `packets`:
//! bursts leave packet by packet; `late`: timers are as late as a kernel's; `proc`: system controls are those of
//! this machine's `/proc/sys`, read at each `socket`; anything else is a system control, `tcp_sack=0`.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use acklab_host::settings::{BadSetting, Sysctls};
use acklab_packetdrill::world::{Virtual, World as _};

/// The addresses that packetdrill gives to the machine unless its options say otherwise.
const LOCAL: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(192, 168, 0, 1), Ipv6Addr::new(0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1));

/// The words, read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    local: Option<IpAddr>,
    mtu: Option<u32>,
    initcwnd: Option<u32>,
    pub(crate) is_cut: bool,
    pub(crate) is_late: bool,
    pub(crate) follows_proc: bool,
    controls: Vec<(String, String)>,
}

impl Setup {
    pub(crate) fn read(flags: &str) -> Result<Self, String> {
        let mut setup = Self::default();
        for word in flags.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let bad = || format!("{word}: not a value");
            match name {
                "local" => setup.local = Some(value.parse().map_err(|_| bad())?),
                "mtu" => setup.mtu = Some(value.parse().map_err(|_| bad())?),
                "initcwnd" => setup.initcwnd = Some(value.parse().map_err(|_| bad())?),
                "packets" => setup.is_cut = true,
                "late" => setup.is_late = true,
                "proc" => setup.follows_proc = true,
                _ => {
                    Sysctls::default().set(name, value).map_err(|why| match why {
                        BadSetting::Unknown => format!("{word}: no such word or system control"),
                        BadSetting::Value => bad(),
                    })?;
                    setup.controls.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        Ok(setup)
    }

    pub(crate) fn local(&self, v6: bool) -> IpAddr {
        let usual = if v6 { LOCAL.1.into() } else { LOCAL.0.into() };
        self.local.filter(|local| local.is_ipv6() == v6).unwrap_or(usual)
    }

    pub(crate) fn apply(&self, world: &mut Virtual) -> Result<(), String> {
        if self.follows_proc {
            follow_proc(world);
        }
        let (sysctls, route) = world.settings();
        for (name, value) in &self.controls {
            sysctls.set(name, value).map_err(|why| format!("{name}={value}: {why:?}"))?;
        }
        route.device_mtu = self.mtu.unwrap_or(route.device_mtu);
        route.initcwnd = self.initcwnd.unwrap_or(route.initcwnd);
        world.change(&[])
    }
}

/// Takes over the system controls of this machine that the host knows; what cannot be read stays as it is.
fn follow_proc(world: &mut Virtual) {
    let sysctls = world.settings().0;
    for folder in ["/proc/sys/net/ipv4", "/proc/sys/net/core"] {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Ok(text) = fs::read_to_string(entry.path()) {
                // Those that the host does not have mean nothing to it.
                let _ = sysctls.set(&name, &text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_settings_and_others_are_refused() {
        let setup = Setup::read("local=10.0.0.1, mtu=1400,tcp_sack=0,packets").expect("words");
        assert_eq!(setup.local(false), IpAddr::from([10, 0, 0, 1]));
        assert_eq!(setup.local(true), IpAddr::from(LOCAL.1));
        assert!(setup.is_cut && !setup.is_late);
        let mut world = Virtual::new();
        setup.apply(&mut world).expect("a host");
        let (sysctls, route) = world.settings();
        assert_eq!((sysctls.of("tcp_sack"), route.mtu()), (0, 1400));
        for bad in ["tcp_sacks=0", "mtu=much", "nonsense", "tcp_sack=x"] {
            assert!(Setup::read(bad).is_err_and(|text| text.starts_with(bad)), "{bad}");
        }
    }
}
