/** Loaded before every test file, by bunfig.toml: only then do its hooks run in every mode. */
import { afterAll, afterEach } from "bun:test"
import { removeLeftovers } from "./leftovers"
import { demandTold } from "./untold"

afterEach(demandTold)
afterAll(() => {
  removeLeftovers()
  demandTold() // of what was answered outside of any test
})
