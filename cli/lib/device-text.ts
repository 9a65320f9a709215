import type { Components } from "../../src/client/components"
import { ago, type Columns, coloured, idColumn, wide } from "./table"

type Device = Components["Device"]

export const deviceColumns: Columns<Device> = {
  ID: idColumn("device"),
  USER: wide(({ user_id }) => user_id),
  DEVICE: wide(({ device_id }) => device_id, "last"),
  NAME: { cell: ({ device_name }) => device_name ?? "", spare: 3 },
  PLATFORM: "platform",
  PROVIDER: { cell: ({ provider }) => provider, spare: 1 },
  STATUS: coloured(({ status }) => status, { active: "green", disabled: "yellow" }, "red"),
  SEEN: ago(({ last_active_at }) => last_active_at),
}
