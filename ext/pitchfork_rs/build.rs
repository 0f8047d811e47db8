//! Exposes the Ruby version to `cfg` attributes.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _ = rb_sys_env::activate()?;
    Ok(())
}
