//! Field lines, as a head and a trailer section have them.

use std::collections::BTreeMap;

use super::Statuses;

/// A field: its name as sent, its value without the blanks around it.
pub type Field = (String, Vec<u8>);

/// Reads a line of a head or a trailer; notes what is wrong with it, and gives back what can be told of it all the same.
pub fn field(line: &[u8], faults: &mut Statuses) -> Option<Field> {
    let field = line_of_field(line, faults);
    if let Some((name, _)) = &field
        && matches!(name.to_ascii_lowercase().as_str(), "content_length" | "transfer_encoding")
    {
        faults.insert(400);
    }
    field
}

/// Reads `name: value`.
fn line_of_field(line: &[u8], faults: &mut Statuses) -> Option<Field> {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else {
        faults.insert(400);
        return None;
    };
    let name = &line[..colon];
    if !is_token(name) {
        faults.insert(400);
    }
    let name = String::from_utf8_lossy(name).into_owned();
    let value = trim(&line[colon + 1..]);
    if value.iter().any(|&byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f) {
        faults.insert(400);
    }
    Some((name, value))
}

/// The values of the fields called `name`, in their order.
#[must_use]
pub fn values(listed: &[Field], name: &str) -> Vec<Vec<u8>> {
    listed.iter().filter(|field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1.clone()).collect()
}

/// What an application finds in its environment.
#[must_use]
pub fn env(listed: &[Field]) -> BTreeMap<String, Vec<u8>> {
    let mut env: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (name, value) in listed {
        let dashed = name.replace('_', "-");
        if name.contains('_') && !values(listed, &dashed).is_empty() {
            continue;
        }
        let key = name.to_ascii_uppercase().replace('-', "_");
        let key = match key.as_str() {
            // The first would collide with the protocol's version; the second follows from the framing.
            "VERSION" | "CONTENT_LENGTH" => continue,
            "CONTENT_TYPE" => key,
            _ => format!("HTTP_{key}"),
        };
        let joint: &[u8] = if key == "HTTP_COOKIE" { b"; " } else { b", " };
        env.entry(key)
            .and_modify(|old| {
                old.extend(joint);
                old.extend(value);
            })
            .or_insert_with(|| value.clone());
    }
    env
}

/// Whether this is a `token` of RFC 9110, section 5.6.2.
#[must_use]
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// `text` without the blanks at its ends.
#[must_use]
pub fn trim(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    while text.last().is_some_and(|&byte| is_blank(byte)) {
        text.pop();
    }
    while text.first().is_some_and(|&byte| is_blank(byte)) {
        text.remove(0);
    }
    text
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}
