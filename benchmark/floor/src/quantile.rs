//! Quantiles of samples that are all kept.

/// The value that this share of the sorted samples does not exceed: the nearest rank. 0 if there are none.
#[must_use]
pub fn quantile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn takes_the_nearest_rank() {
        let samples: Vec<u64> = (1..=200).collect();
        assert_eq!(quantile(&samples, 50), 100);
        assert_eq!(quantile(&samples, 99), 198);
        assert_eq!(quantile(&samples, 100), 200);
        assert_eq!(quantile(&[7], 50), 7);
        assert_eq!(quantile(&[], 99), 0);
    }
}
