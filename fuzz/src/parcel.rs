//! The packet in which a connection changes hands: whatever comes is refused or has one meaning, which has one packet.
//!
//! The input is taken twice: as a packet, and as the numbers of a parcel that is then packed.

use std::net::IpAddr;

use pitchfork_core::reactor::Then;
use pitchfork_core::reactor::wire::{Kind, LABEL, Label, MAX_PACKET};

/// The target.
pub fn run(input: &[u8]) {
    arbitrary(input);
    round_trip(input);
}

fn arbitrary(input: &[u8]) {
    let meanings: Vec<_> =
        (0..5).filter_map(|descriptors| Some((descriptors, Label::decode(input, descriptors).ok()?))).collect();
    assert!(meanings.len() <= 1, "the number of descriptors does not matter");
    let Some((descriptors, (label, inline))) = meanings.first() else { return };
    assert_eq!(*descriptors, label.descriptors());
    assert_eq!(label.encode(), input[..LABEL], "two packets mean the same");
    assert_eq!(*inline, &input[LABEL..]);
    assert!(input.len() <= MAX_PACKET);
    assert_eq!(inline.len() as u64, if label.is_spilled() { 0 } else { label.total() });
}

fn round_trip(input: &[u8]) {
    let Some(label) = label(input) else { return };
    let mut packet = label.encode().to_vec();
    if !label.is_spilled() {
        packet.resize(LABEL + usize::try_from(label.total()).unwrap_or(0), b'x');
    }
    match Label::decode(&packet, label.descriptors()) {
        Ok((found, inline)) => assert_eq!((found, inline), (label, &packet[LABEL..])),
        Err(error) => panic!("{label:?} is refused: {error}"),
    }
    assert!(Label::decode(&packet, label.descriptors() + 1).is_err());
    packet.pop();
    assert!(Label::decode(&packet, label.descriptors()).is_err());
}

/// Some label of a parcel that can be.
fn label(input: &[u8]) -> Option<Label> {
    let numbers: Vec<u64> =
        input.chunks_exact(8).filter_map(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?))).collect();
    let &[choice, since, ref rest @ ..] = &numbers[..] else { return None };
    let &[first, second, third, offset, length, address, ..] = rest else { return None };
    let byte = |at: u32| choice >> (8 * at) & 0xff;
    // Short ones, long ones, and none.
    let size = |number: u64, at: u32| match byte(at) % 4 {
        0 => 0,
        1 => number % 100,
        2 => number % 20_000,
        _ => number >> 4,
    };
    let sections = [size(first, 3), size(second, 4), size(third, 5)];
    let file = (byte(2) % 2 == 1).then_some((size(offset, 6) / 4, size(length, 7) / 4));
    let [first, second, _] = sections;
    let (kind, sections, file) = match byte(0) % 6 {
        0 => (Kind::Waiting, [first, 0, 0], None),
        1 => (Kind::Request, [first, 0, 0], None),
        2 => match file {
            Some((_, length)) => (Kind::RequestWithBody, [first, 0, 0], Some((0, length))),
            None => (Kind::RequestWithBody, [first, second, 0], None),
        },
        3 => (Kind::Response(Then::KeepAlive), sections, file),
        4 => (Kind::Response(Then::Close), sections, file),
        _ => (Kind::Close, [first, 0, 0], None),
    };
    let peer = match byte(1) % 3 {
        0 => None,
        1 => Some(IpAddr::from([127, 0, 0, u8::try_from(address & 0xff).unwrap_or(0)])),
        _ => Some(IpAddr::from((u128::from(address) << 64 | u128::from(since)).to_be_bytes())),
    };
    let served = u32::try_from(address >> 32).unwrap_or(0);
    Some(Label { kind, peer, served, since, sections, file })
}
