ALTER TABLE `inbound_emails` ADD `stored_bytes` integer;--> statement-breakpoint
ALTER TABLE `messages` ADD `stored_bytes` integer;
--> statement-breakpoint
INSERT INTO `counters` (`project_id`, `name`, `shard`, `value`) SELECT `project_id`, 'stored_bytes.received', 0, sum(`size`) FROM `inbound_emails` WHERE `status` <> 'received' GROUP BY `project_id`;
--> statement-breakpoint
INSERT INTO `counters` (`project_id`, `name`, `shard`, `value`) SELECT `project_id`, 'stored_bytes.mailbox', 0, sum(`size`) FROM `mailbox_mails` GROUP BY `project_id`;