-- What is different in a policy for one partition, account or user: versions of its own, under the
-- name "relax:partition=small". A policy itself has no base.
ALTER TABLE policy ADD COLUMN base TEXT REFERENCES policy (name);
CREATE INDEX policy_by_base ON policy (base);

-- Where a lineage ran, "" where nobody said.
ALTER TABLE lineage ADD COLUMN partition TEXT NOT NULL DEFAULT '';
