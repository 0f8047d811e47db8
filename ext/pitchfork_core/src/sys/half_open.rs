//! Connections that are not in a listener's queue yet, though their clients may take them for made.
//!
//! That is how long an acknowledgement is on its way, and how long `TCP_DEFER_ACCEPT` keeps a silent client back. They
//! are in no queue that a listener tells of, but `proc_net_tcp(5)` lists them.

use std::fs;

/// Whether connections to one of these TCP ports are being made. Where `/proc` does not tell, none are.
#[must_use]
pub fn any(ports: &[u16]) -> bool {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .any(|path| fs::read_to_string(path).is_ok_and(|table| table.lines().any(|line| is_one(line, ports))))
}

/// Whether a line of the table is about such a connection.
fn is_one(line: &str, ports: &[u16]) -> bool {
    const SYN_RECEIVED: &str = "03";
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (Some(local), Some(_remote), Some(state)) = (fields.next(), fields.next(), fields.next()) else {
        return false;
    };
    let port = local.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
    state == SYN_RECEIVED && port.is_some_and(|port| ports.contains(&port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_manual_has_them() {
        let line = |state| {
            format!(
                "   3: 0100007F:1F90 0100007F:C5F2 {state} 00000000:00000000 01:00000064 00000000     0        0 0 2"
            )
        };
        assert!(is_one(&line("03"), &[80, 8080]));
        assert!(!is_one(&line("03"), &[80, 0xC5F2]));
        assert!(!is_one(&line("01"), &[8080]));
        let six =
            "   0: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:C5F2 03 00000000:00000000";
        assert!(is_one(six, &[8080]));
        for other in ["  sl  local_address rem_address   st tx_queue rx_queue", "", "0: x y 03"] {
            assert!(!is_one(other, &[8080]), "{other:?}");
        }
    }
}
