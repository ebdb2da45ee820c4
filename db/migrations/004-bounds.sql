-- Whom the cluster charges, for bounds on accounts; and what ended a lineage that is stopped (ladder,
-- bound, dry-run): a policy's pause counts only what it could not help.
ALTER TABLE lineage ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE lineage ADD COLUMN stopped_by TEXT NOT NULL DEFAULT '';
CREATE INDEX lineage_by_account ON lineage (account, updated_ms);
CREATE INDEX lineage_by_framework ON lineage (framework, updated_ms);
-- What its owner said: stop (no more retries), hold (the settings stay); beside the state, since a
-- lineage that goes on running keeps its state.
ALTER TABLE lineage ADD COLUMN wish TEXT NOT NULL DEFAULT '';
