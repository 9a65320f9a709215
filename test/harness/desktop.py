"""A desktop without a screen: it takes notifications, and clicks and closes them as it is told.

Prints the address of its session bus, then one line of JSON for each notification. On stdin it
takes `click ID ACTION` and `close ID`.
"""

import json
import os
import select
import subprocess
import sys

import dbusmock

NAME = "org.freedesktop.Notifications"

dbusmock.DBusTestCase.setUpClass()
dbusmock.DBusTestCase.start_session_bus()
bus = dbusmock.DBusTestCase.get_dbus()
capabilities = "body body-markup actions icon-static"
daemon, service = dbusmock.DBusTestCase.spawn_server_template(
    "notification_daemon", {"capabilities": capabilities}, stdout=subprocess.DEVNULL
)
print(os.environ["DBUS_SESSION_BUS_ADDRESS"], flush=True)
told = 0
shown = 0
try:
    while True:
        calls = service.GetMethodCalls("Notify", dbus_interface=dbusmock.MOCK_IFACE)
        for _, (_, replaces, _, title, body, actions, _, _) in calls[told:]:
            shown = max(shown, int(replaces) or shown + 1)
            line = {
                "id": int(replaces) or shown,
                "title": title,
                "body": body,
                "actions": list(actions),
            }
            print(json.dumps(line), flush=True)
        told = len(calls)
        if not select.select([sys.stdin], [], [], 0.05)[0]:
            continue
        words = sys.stdin.readline().split()
        if not words:
            break
        if words[0] == "click":
            signal, kinds, values = "ActionInvoked", "us", [int(words[1]), words[2]]
        else:
            signal, kinds, values = "NotificationClosed", "uu", [int(words[1]), 2]
        service.EmitSignal(NAME, signal, kinds, values, dbus_interface=dbusmock.MOCK_IFACE)
finally:
    daemon.terminate()
    dbusmock.DBusTestCase.tearDownClass()
