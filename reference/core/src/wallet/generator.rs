//! Multiples of the curve's generator, from a table.
//!
//! Deriving an address multiplies the generator by a number that is new each time; it is most of what opening a
//! charge costs. With every multiple of every byte of the number at hand, 32 additions do what takes the library 65
//! and more. The table takes 700 kB and some milliseconds, once, when the first address is derived.

use std::sync::LazyLock;

use k256::{
    AffinePoint, ProjectivePoint, Scalar,
    elliptic_curve::{BatchNormalize, PrimeField},
};

/// Values of a byte that add something.
const VALUES: usize = 255;

/// For each byte of a number, least first, what its values from 1 on add.
static TABLE: LazyLock<Vec<AffinePoint>> = LazyLock::new(|| {
    let mut points = Vec::with_capacity(32 * VALUES);
    let mut unit = ProjectivePoint::GENERATOR;
    for _ in 0..32 {
        let mut multiple = unit;
        for _ in 0..VALUES {
            points.push(multiple);
            multiple += unit;
        }
        // 255 units and one more.
        unit = multiple;
    }
    // With the third coordinate gone an addition is shorter, and one division serves all.
    ProjectivePoint::batch_normalize(points.as_slice())
});

/// `k` times the generator. Not in constant time: for numbers that anybody may know.
pub(super) fn times(k: &Scalar) -> ProjectivePoint {
    let mut sum = ProjectivePoint::IDENTITY;
    for (values, byte) in TABLE.chunks(VALUES).zip(k.to_repr().iter().rev()) {
        if let Some(place) = usize::from(*byte).checked_sub(1) {
            sum += values[place];
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(k: Scalar) {
        assert_eq!(times(&k), ProjectivePoint::GENERATOR * k);
    }

    #[test]
    fn the_ends_of_the_range_are_right() {
        for k in [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(255_u64), Scalar::from(256_u64)] {
            check(k);
        }
    }

    proptest! {
        #[test]
        fn the_table_multiplies_as_the_library_does(bytes: [u8; 32]) {
            let k: Option<Scalar> = Scalar::from_repr(bytes.into()).into();
            check(k.unwrap_or(Scalar::ONE));
        }
    }
}
