const full = Bun.password.hash

/** A hash tells its cost itself, so it is verified as ever. */
const quick: typeof full = (password) =>
  full(password, { algorithm: "argon2id", memoryCost: 8, timeCost: 1 })

// Loaded before every test: with the cost of a server, hashing takes longer than most of them.
Bun.password.hash = quick

/** Until it is disposed of, passwords are hashed as a server does. */
export function hashingFully(): Disposable {
  Bun.password.hash = full
  return {
    [Symbol.dispose]() {
      Bun.password.hash = quick
    },
  }
}
