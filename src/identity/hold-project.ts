import { eq } from "drizzle-orm"
import { held } from "../store/dialect"
import type { Tx } from "../store/store"
import { projects } from "./tables"

/** Locks the project until the transaction ends: two requests at once must not pass a limit together. */
export async function holdProject(tx: Tx, project_id: string): Promise<void> {
  await held(tx.select({ id: projects.id }).from(projects).where(eq(projects.id, project_id)))
}
