// Package cluster combines the directories of one or several servers: their tables, the replicas of each tablet, the
// master's catalogue, what is missing, and what no table claims. Replicas are not equal byte for byte, because each
// server flushes and compacts on its own; they are compared by rows and operations.
package cluster
