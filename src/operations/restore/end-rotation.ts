import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { openSecrets, type Secrets } from "../../core/secrets"
import * as instanceValues from "../../store/instance-values"
import type { Store } from "../../store/store"
import { MASTER_KEY, NEXT_MASTER_KEY, PREVIOUS_KEY, WrongMasterKey } from "../instance"
import { rotateMasterKey } from "../rotate-master-key"

/**
 * A copy from the midst of a rotation has secrets of two master keys. With the next one at hand the rotation
 * ends here: every secret is sealed with it. With the one before nothing is changed, and the instance goes
 * on with the rotation when it has the file of the next key. Writes both keys into the folder, which the
 * caller removes. Throws WrongMasterKey where the copy does not hold the key of before.
 */
export async function endRotation(store: Store, secrets: Secrets, folder: string): Promise<void> {
  const { read } = store
  const next = await instanceValues.find(read, NEXT_MASTER_KEY)
  if (next !== secrets.key_id) return
  const sealed = await instanceValues.find(read, PREVIOUS_KEY)
  const used = await instanceValues.find(read, MASTER_KEY)
  if (sealed === undefined) throw new WrongMasterKey(`${used}`, next)
  const keep = (name: string, key: string) =>
    writeFileSync(join(folder, name), `${key}\n`, { mode: 0o600, flag: "wx" })
  keep("master.key", secrets.open(sealed, PREVIOUS_KEY))
  keep("master.key.next", secrets.keys.current())
  const both = openSecrets({ data_dir: folder, master_key: null, make: false })
  await rotateMasterKey({ store, secrets: both }, { new_key: null, end_links: false })
}
