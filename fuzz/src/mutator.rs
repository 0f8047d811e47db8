//! Changes inputs at random, without knowing which change leads anywhere: for replays without libFuzzer.

use crate::Random;

/// What HTTP parsers have stumbled over.
const TOKENS: [&[u8]; 40] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\0",
    b" ",
    b"\t",
    b":",
    b": ",
    b" :",
    b";",
    b",",
    b"#",
    b"?",
    b"/",
    b"*",
    b"0",
    b"0x",
    b"+",
    b"-",
    b"_",
    b"%",
    b"%00",
    b"[::1]",
    b"@",
    b"\x7f",
    b"\x80",
    b"\xc3\xa9",
    b"\xff",
    b"\r\n ",
    b"\r\nHost: a",
    b"\r\nContent-Length: 1",
    b"\r\nTransfer-Encoding: chunked",
    b"\r\nContent_Length: 1",
    b"\r\nExpect: 100-continue",
    b"chunked",
    b" HTTP/1.0\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff",
    b"\\n",
];

/// The longest input that is made.
const LONGEST: usize = 2048;

/// One of the seeds, changed in a few places.
#[must_use]
pub fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = pick(seeds, random);
    for _ in 0..=random.below(5) {
        let at = random.below(input.len() + 1);
        let to = at + random.below(1 + (input.len() - at).min(24));
        match random.below(10) {
            0 => drop(input.drain(at..to)),
            1 => insert(&mut input, at, at, TOKENS[random.below(TOKENS.len())]),
            2 => insert(&mut input, at, to, TOKENS[random.below(TOKENS.len())]),
            3 => {
                let copy = input[at..to].to_vec();
                insert(&mut input, at, at, &copy);
            }
            4 => {
                let other = pick(seeds, random);
                let from = random.below(other.len() + 1);
                insert(&mut input, at, to, &other[from..]);
            }
            5 => input.truncate(at),
            6 => {
                let filler = vec![any_byte(random); random.below(160)];
                insert(&mut input, at, at, &filler);
            }
            7 => {
                // A line among other lines: fields that should not meet.
                let other = pick(seeds, random);
                let line = pick(&lines(&other), random);
                let before = random.below(lines(&input).len());
                let at = lines(&input).iter().take(before).map(Vec::len).sum();
                insert(&mut input, at, at, &line);
            }
            8 => change(&mut input, at, |byte| byte ^ (1 << random.below(8))),
            _ => {
                let byte = any_byte(random);
                change(&mut input, at, |_| byte);
            }
        }
        input.truncate(LONGEST);
    }
    input
}

fn pick(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    seeds.get(random.below(seeds.len())).cloned().unwrap_or_default()
}

/// The lines, with what ends them.
fn lines(input: &[u8]) -> Vec<Vec<u8>> {
    input.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn insert(input: &mut Vec<u8>, from: usize, to: usize, bytes: &[u8]) {
    input.splice(from..to, bytes.iter().copied());
}

fn change(input: &mut [u8], at: usize, change: impl FnOnce(u8) -> u8) {
    if let Some(byte) = input.get_mut(at) {
        *byte = change(*byte);
    }
}

fn any_byte(random: &mut Random) -> u8 {
    random.next_u64().to_le_bytes()[0]
}
