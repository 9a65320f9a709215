/** Loaded before every test file, by bunfig.toml: only then does its hook run in every mode. */
import { afterAll } from "bun:test"
import { removeLeftovers } from "./leftovers"

afterAll(removeLeftovers)
