use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn peers() -> impl Strategy<Value = Option<IpAddr>> {
    prop_oneof![
        Just(None),
        any::<[u8; 4]>().prop_map(|octets| Some(IpAddr::from(octets))),
        any::<[u8; 16]>().prop_map(|octets| Some(IpAddr::from(octets))),
    ]
}

fn lengths() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..9000u64, 0..1u64 << 40]
}

fn files() -> impl Strategy<Value = Option<(u64, u64)>> {
    proptest::option::of((lengths(), lengths()))
}

/// A kind, with sections and a file that it may have.
fn contents() -> impl Strategy<Value = (Kind, [u64; SECTIONS], Option<(u64, u64)>)> {
    let plain = (proptest::sample::select(vec![Kind::Waiting, Kind::Request, Kind::Close]), lengths())
        .prop_map(|(kind, first)| (kind, [first, 0, 0], None));
    let body = (lengths(), lengths(), any::<bool>()).prop_map(|(first, body, in_file)| {
        let file = in_file.then_some((0, body));
        (Kind::RequestWithBody, [first, if in_file { 0 } else { body }, 0], file)
    });
    let response = (any::<bool>(), [lengths(), lengths(), lengths()], files()).prop_map(|(close, sections, file)| {
        (Kind::Response(if close { Then::Close } else { Then::KeepAlive }), sections, file)
    });
    prop_oneof![plain, body, response]
}

fn labels() -> impl Strategy<Value = Label> {
    (contents(), peers(), any::<u32>(), any::<u64>()).prop_map(|((kind, sections, file), peer, served, since)| Label {
        kind,
        peer,
        served,
        since,
        sections,
        file,
    })
}

fn packet(label: &Label) -> Vec<u8> {
    let mut packet = label.encode().to_vec();
    if !label.is_spilled() {
        packet.resize(LABEL + usize::try_from(label.total()).unwrap(), b'x');
    }
    packet
}

proptest! {
    #[test]
    fn a_label_survives_its_packet(label in labels()) {
        let packet = packet(&label);
        prop_assert!(packet.len() <= MAX_PACKET);
        let (found, sections) = Label::decode(&packet, label.descriptors()).unwrap();
        prop_assert_eq!(found, label);
        prop_assert_eq!(sections, &packet[LABEL..]);
    }

    #[test]
    fn a_packet_that_was_cut_or_grew_or_lost_a_descriptor_is_refused(label in labels()) {
        let mut packet = packet(&label);
        let descriptors = label.descriptors();
        prop_assert!(Label::decode(&packet, descriptors - 1).is_err());
        prop_assert!(Label::decode(&packet, descriptors + 1).is_err());
        prop_assert!(Label::decode(&packet[..packet.len() - 1], descriptors).is_err());
        packet.push(0);
        prop_assert!(Label::decode(&packet, descriptors).is_err());
    }

    #[test]
    fn a_changed_byte_is_refused_or_means_something_else(label in labels(), at in 0..LABEL, change in 1..=255u8) {
        let mut packet = packet(&label);
        packet[at] ^= change;
        for descriptors in 0..5 {
            if let Ok((found, _)) = Label::decode(&packet, descriptors) {
                prop_assert_ne!(found, label);
                prop_assert_eq!(&found.encode()[..], &packet[..LABEL]);
            }
        }
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in vec(any::<u8>(), 0..200), descriptors in 0..5usize) {
        let _ = Label::decode(&bytes, descriptors);
    }
}

#[test]
fn the_sections_leave_the_packet_only_if_they_must() {
    let label = |length| Label {
        kind: Kind::Response(Then::Close),
        peer: None,
        served: 0,
        since: 0,
        sections: [1, length - 2, 1],
        file: None,
    };
    let most = label(MOST_INLINE as u64);
    assert_eq!((most.is_spilled(), most.descriptors(), packet(&most).len()), (false, 1, MAX_PACKET));
    let more = label(MOST_INLINE as u64 + 1);
    assert_eq!((more.is_spilled(), more.descriptors(), packet(&more).len()), (true, 2, LABEL));
}

#[test]
fn what_no_content_has_is_refused() {
    let plain = Label { kind: Kind::Waiting, peer: None, served: 0, since: 0, sections: [0; SECTIONS], file: None };
    for label in [
        Label { sections: [0, 1, 0], ..plain },
        Label { file: Some((0, 1)), ..plain },
        Label { kind: Kind::RequestWithBody, sections: [1, 1, 1], ..plain },
        Label { kind: Kind::RequestWithBody, sections: [1, 1, 0], file: Some((0, 1)), ..plain },
        Label { kind: Kind::RequestWithBody, file: Some((1, 1)), ..plain },
        Label { kind: Kind::Response(Then::Close), file: Some((u64::MAX, 1)), ..plain },
        Label { kind: Kind::Response(Then::Close), file: Some((MAX_OFFSET, 1)), ..plain },
        Label { kind: Kind::Response(Then::Close), sections: [u64::MAX, 2, 0], ..plain },
    ] {
        assert!(Label::decode(&packet(&label), label.descriptors()).is_err(), "{label:?}");
    }
}
