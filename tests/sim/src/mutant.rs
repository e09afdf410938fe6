//! Rules to break: each mutant breaks one, in the simulator's own adapters, so that it is seen that
//! breaking it is noticed.

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A lost lease's charge is taken from what live ones hold (race R3).
    SettlesLostFromHeld,
    /// A replica grants by an amount that was lowered meanwhile (R14).
    GrantsByOldAmount,
    /// A replica grants on a snapshot that is older than its locks (R2).
    GrantsOnStaleSnapshot,
    /// What a lost holder had is free at once.
    FreesLostCredit,
    /// An outage's allowance is there anew for each request.
    RenewsAllowance,
    /// What a reservation gives back also goes to the present epoch (R7).
    RefillsNewEpoch,
    /// Batches behind the cursor count again.
    IgnoresCursor,
    /// Charges go to the window of their arrival (R12).
    ChargesWindowOfArrival,
    /// Whoever adopts a dead process's directory passes over its open table (R1).
    ForgetsOpenTable,
    /// A slot is freed before its record is in the spool.
    FreesSlotFirst,
    /// One who went away while it waited is given what it waited for (R5).
    ReservesForTheGone,
    /// Missing credit is taken for a refusal (R6).
    RefusesOnLocalMiss,
    /// What others hold idle is not asked back.
    NeverRecalls,
}
