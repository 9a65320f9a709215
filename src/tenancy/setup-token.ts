import { timingSafeEqual } from "node:crypto"
import { chmodSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fail } from "../core/errors"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { newToken } from "../identity/tokens"
import * as instanceValues from "../store/instance-values"
import type { Store, Tx } from "../store/store"
import { isSetUp, oneAtATime } from "./first"

const NAME = "setup_token"

export interface SetupToken {
  token: string
  /** The file that holds it too, readable by the owner of the data folder only. */
  path: string
}

interface Place {
  store: Store
  secrets: Secrets
  data_dir: string
}

/**
 * Proves that whoever sets the instance up can see its console or its files. Sealed in the
 * database, so that all nodes and every start until then know the same one.
 */
export class Setup {
  readonly #place: Place

  constructor(place: Place) {
    this.#place = place
  }

  /** Called at every start. Undefined, and nothing is left of the token, once there is an owner. */
  async begin(): Promise<SetupToken | undefined> {
    const token = await this.#place.store.tx(async (tx) => {
      await oneAtATime(tx)
      if (!(await isSetUp(tx))) return (await this.#read(tx)) ?? (await this.#make(tx))
      await this.end(tx)
      return undefined
    })
    if (token === undefined) return undefined
    writeFileSync(this.#path, `${token}\n`, { mode: 0o600 })
    chmodSync(this.#path, 0o600) // an older file keeps the mode it had
    return { token, path: this.#path }
  }

  /** Throws 404 once the instance has an owner, 401 for a wrong token. Holds off other setups. */
  async demand(tx: Tx, token: string): Promise<void> {
    await oneAtATime(tx)
    await demandUnowned(tx)
    const right = await this.#read(tx)
    if (right === undefined || !isEqual(token, right)) {
      fail(
        "unauthorized",
        "The setup token is not right. Use the one that the first start printed.",
      )
    }
  }

  /** The token dies with the first owner. */
  async end(tx: Tx): Promise<void> {
    await instanceValues.remove(tx, NAME)
    tx.afterCommit(() => this.#removeFile())
  }

  get #path() {
    return join(this.#place.data_dir, "setup-token")
  }

  #removeFile() {
    try {
      rmSync(this.#path, { force: true })
    } catch (error) {
      log.warn(
        "the file of the setup token could not be removed; its token is not valid any more",
        { error },
      )
    }
  }

  async #read(tx: Tx): Promise<string | undefined> {
    const sealed = await instanceValues.find(tx, NAME)
    return sealed && this.#place.secrets.open(sealed, NAME)
  }

  async #make(tx: Tx): Promise<string> {
    const token = newToken("setup")
    await instanceValues.set(tx, NAME, this.#place.secrets.seal(token, NAME))
    return token
  }
}

/** Throws 404: a finished setup is no route any more. */
export async function demandUnowned(tx: Tx): Promise<void> {
  if (await isSetUp(tx)) fail("not_found", "This instance is set up already. Sign in instead.")
}

function isEqual(given: string, right: string): boolean {
  const [left, other] = [Buffer.from(given), Buffer.from(right)]
  return left.length === other.length && timingSafeEqual(left, other)
}
