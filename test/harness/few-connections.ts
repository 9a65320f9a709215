import { POOL } from "../../src/store/postgres-pool"

// Loaded before every test: to open 16 connections takes longer than most of what tests ask of them.
POOL.connections = 6
