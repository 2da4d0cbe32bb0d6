//! Serialization of shared values (`Arc`): each is written once, and is shared again after reading.
//!
//! serde passes no context from one value to the next, so the values written or read so far are in thread-local tables
//! while a state is written or read.

use std::{any::Any, cell::RefCell, collections::HashMap, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The representation of a value in a stored state.
#[derive(Serialize, Deserialize)]
enum SharedSlot<T> {
    /// A value that is used once.
    Unshared(T),
    /// The first use of a shared value, which gets the next number.
    FirstUse(T),
    /// A further use of the value with this number.
    LaterUse(u32),
}

thread_local! {
    /// The numbers of the written values, by address; `None` outside of [`write_shared`], where every owner writes a copy.
    static WRITTEN: RefCell<Option<HashMap<usize, u32>>> = const { RefCell::new(None) };
    /// The values read so far, by number.
    static READ: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `write`; values that it serializes through this module are written once.
pub fn write_shared<T>(write: impl FnOnce() -> T) -> T {
    WRITTEN.set(Some(HashMap::new()));
    let output = write();
    WRITTEN.set(None);
    output
}

/// Runs `read` on the output of [`write_shared`].
pub fn read_shared<T>(read: impl FnOnce() -> T) -> T {
    READ.take();
    let value = read();
    READ.take();
    value
}

/// Serializes a shared value, for `#[serde(with = "shared")]`.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<T: Serialize, S: Serializer>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    write(Arc::as_ptr(value).addr(), Arc::strong_count(value), &**value, serializer)
}

/// Deserializes a shared value, for `#[serde(with = "shared")]`.
///
/// # Errors
///
/// Those of the deserializer, and a reference to a value of another type.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Arc<T>, D::Error>
where
    T: Deserialize<'de> + 'static,
    D: Deserializer<'de>,
{
    read(deserializer, Arc::new)
}

/// Serialization of shared texts (`Arc<str>`).
pub mod text {
    use super::{Arc, Deserializer, Serializer};

    /// Serializes a shared text, for `#[serde(with = "shared::text")]`.
    ///
    /// # Errors
    ///
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(value: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        super::write(value.as_ptr().addr(), Arc::strong_count(value), &**value, serializer)
    }

    /// Deserializes a shared text, for `#[serde(with = "shared::text")]`.
    ///
    /// # Errors
    ///
    /// Those of the deserializer, and a reference to a value of another type.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        super::read(deserializer, |text: &str| text.into())
    }
}

/// Serializes a value at an address: in full if it has one owner or is written for the first time, otherwise its
/// number.
fn write<T: Serialize + ?Sized, S: Serializer>(
    address: usize,
    owners: usize,
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let number = WRITTEN.with_borrow(|written| {
        written.as_ref().filter(|_| owners > 1).map(|written| written.get(&address).copied())
    });
    match number {
        None => SharedSlot::Unshared(value).serialize(serializer),
        Some(Some(number)) => SharedSlot::<&T>::LaterUse(number).serialize(serializer),
        Some(None) => {
            let output = SharedSlot::FirstUse(value).serialize(serializer)?;
            WRITTEN.with_borrow_mut(|written| {
                let written = written.as_mut().expect("a state is written by one call");
                let number = u32::try_from(written.len()).expect("fewer than 2^32 values");
                written.insert(address, number);
            });
            Ok(output)
        }
    }
}

fn read<'de, T: Deserialize<'de>, A: Clone + 'static, D: Deserializer<'de>>(
    deserializer: D,
    wrap: impl FnOnce(T) -> A,
) -> Result<A, D::Error> {
    match SharedSlot::<T>::deserialize(deserializer)? {
        SharedSlot::Unshared(value) => Ok(wrap(value)),
        SharedSlot::FirstUse(value) => {
            let shared = wrap(value);
            READ.with_borrow_mut(|read| read.push(Box::new(shared.clone())));
            Ok(shared)
        }
        SharedSlot::LaterUse(number) => READ.with_borrow(|read| {
            let shared = read.get(number as usize).and_then(|shared| shared.downcast_ref::<A>());
            shared.cloned().ok_or_else(|| {
                D::Error::custom("a reference to a value that was not written before, or is of another type")
            })
        }),
    }
}
