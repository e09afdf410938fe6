//! All accounts of a process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Account, LimitTerms, Wake};

/// Look-ups of different accounts hardly ever meet on a lock's line.
const SHARDS: usize = 64;

/// By limit, then subject.
type Shard = BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<Account>>>;

/// The accounts of one process, shared by its workers and its agent.
#[derive(Debug)]
pub struct Accounts {
    shards: Vec<RwLock<Shard>>,
    common: Arc<Common>,
}

/// What all accounts of a process share.
#[derive(Default)]
pub(crate) struct Common {
    usable_until_us: AtomicU64,
    waiting: AtomicUsize,
    needy: Mutex<Vec<Arc<Account>>>,
    bell: OnceLock<Arc<dyn Wake>>,
}

// === impl Accounts ===

impl Default for Accounts {
    fn default() -> Self {
        Self::new()
    }
}

impl Accounts {
    /// No accounts, and nothing usable until the agent says so.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            common: Arc::default(),
        }
    }

    /// The account of a limit for a subject, made when first asked for. It takes on `limit` if its
    /// terms have changed.
    pub fn account(&self, limit: &LimitTerms, subject: &str) -> Arc<Account> {
        let Some(shard) = self.shard(&limit.id, subject) else {
            return Arc::new(Account::new(limit, subject, Arc::clone(&self.common)));
        };
        let found = read(shard)
            .get(&limit.id)
            .and_then(|subjects| subjects.get(subject))
            .cloned();
        if let Some(account) = found {
            account.take_on(limit);
            return account;
        }
        let mut shard = write(shard);
        let subjects = shard.entry(Arc::clone(&limit.id)).or_default();
        if let Some(account) = subjects.get(subject) {
            return Arc::clone(account);
        }
        let account = Arc::new(Account::new(limit, subject, Arc::clone(&self.common)));
        subjects.insert(Arc::clone(account.subject()), Arc::clone(&account));
        account
    }

    /// Credit may be spent until `mono_us`; 0: not at all. For the agent.
    pub fn usable_until(&self, mono_us: u64) {
        self.common
            .usable_until_us
            .store(mono_us, Ordering::Release);
    }

    /// What to ring when an account gets needy while none was: the agent is to come and
    /// [`Self::take_needy`]. Rung on workers' threads: it must not block. Set once; a later one is
    /// ignored.
    pub fn set_bell(&self, bell: Arc<dyn Wake>) {
        drop(self.common.bell.set(bell));
    }

    /// The accounts that lacked credit, ran low, rolled over or gave a waiter reason to hope since
    /// the last call, each once.
    #[must_use]
    pub fn take_needy(&self) -> Vec<Arc<Account>> {
        let needy = std::mem::take(&mut *self.common.needy());
        // Before the caller looks at them: what comes later marks them anew.
        needy.iter().for_each(|account| account.unmark());
        needy
    }

    /// All accounts, by limit and subject.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Account>> {
        let mut all: Vec<Arc<Account>> = Vec::new();
        for shard in &self.shards {
            let shard = read(shard);
            all.extend(shard.values().flat_map(BTreeMap::values).cloned());
        }
        all.sort_by(|a, b| (a.limit(), a.subject()).cmp(&(b.limit(), b.subject())));
        all
    }

    /// Forgets an account that nobody holds but by `account`, its one clone outside; false if others
    /// do. For the agent, who has returned its credit.
    #[must_use]
    pub fn forget(&self, account: &Arc<Account>) -> bool {
        let Some(shard) = self.shard(account.limit(), account.subject()) else {
            return false;
        };
        let mut shard = write(shard);
        // The map's and the argument's; nobody can get at it while the shard is locked.
        if Arc::strong_count(account) != 2 {
            return false;
        }
        let Some(subjects) = shard.get_mut(account.limit()) else {
            return false;
        };
        let removed = subjects.remove(account.subject()).is_some();
        if subjects.is_empty() {
            shard.remove(account.limit());
        }
        removed
    }

    /// Requests that wait, of all accounts.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.common.waiting.load(Ordering::Acquire)
    }

    fn shard(&self, limit: &str, subject: &str) -> Option<&RwLock<Shard>> {
        let hash = crc32c::crc32c_append(crc32c::crc32c(limit.as_bytes()), subject.as_bytes());
        let at = usize::try_from(hash).unwrap_or_default() % SHARDS;
        self.shards.get(at)
    }
}

fn read(shard: &RwLock<Shard>) -> RwLockReadGuard<'_, Shard> {
    shard.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(shard: &RwLock<Shard>) -> RwLockWriteGuard<'_, Shard> {
    shard.write().unwrap_or_else(PoisonError::into_inner)
}

// === impl Common ===

impl Common {
    pub(crate) fn is_usable(&self, now_us: u64) -> bool {
        now_us < self.usable_until_us.load(Ordering::Acquire)
    }

    /// Counts one more who waits, unless there are `cap` of them.
    pub(crate) fn join(&self, cap: usize) -> bool {
        let join = |waiting| (waiting < cap).then_some(waiting + 1);
        self.waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, join)
            .is_ok()
    }

    pub(crate) fn leave(&self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn mark(&self, account: Arc<Account>) {
        let mut needy = self.needy();
        let is_first = needy.is_empty();
        needy.push(account);
        drop(needy);
        if is_first && let Some(bell) = self.bell.get() {
            bell.wake();
        }
    }

    fn needy(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Account>>> {
        self.needy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Common")
            .field("usable_until_us", &self.usable_until_us)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}
