//! Deposit addresses, derived from what the account owner made public. No private key comes here.
