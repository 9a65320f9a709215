import { Dialog } from "../parts/dialog"
import { MAILBOX_KEYS, signOf } from "./mailbox-keys"

/** What each key does. */
export const KeysDialog = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys" onClose={onClose}>
    <dl class="facts">
      {MAILBOX_KEYS.map(({ keys, text }) => (
        <div class="pair" key={text}>
          <dt>
            {keys.map((key) => (
              <kbd key={key}>{signOf(key)}</kbd>
            ))}
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
    <p class="hint">
      They are the keys of <code>belfry tui</code>.
    </p>
  </Dialog>
)
