import { newId } from "../core/ids"

/** Names the run of a server: of this process. It proves that HTTP and the admin socket lead to the same one. */
export const RUN_ID = newId()
