CREATE TABLE `inbound_contents` (
	`inbound_id` blob PRIMARY KEY NOT NULL,
	`content` text NOT NULL,
	FOREIGN KEY (`inbound_id`) REFERENCES `inbound_emails`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `inbound_emails` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`domain` text NOT NULL,
	`to_email` text NOT NULL,
	`from_email` text,
	`from_name` text,
	`subject` text,
	`rfc_message_id` text,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`thread_id` blob,
	`in_reply_to` text,
	`replied_to_message_id` blob,
	`mailbox_hash` text,
	`auto_submitted` text,
	`verified` integer,
	`spf_verdict` text,
	`dkim_verdict` text,
	`dmarc_verdict` text,
	`arc_verdict` text,
	`parse_error` integer NOT NULL,
	`size` integer NOT NULL,
	`raw_sha256` text NOT NULL,
	`session` text NOT NULL,
	`parsed` text,
	`route_id` blob,
	`event_id` blob,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `inbound_emails_by_project` ON `inbound_emails` (`project_id`,`id`);--> statement-breakpoint
CREATE INDEX `inbound_emails_by_recipient` ON `inbound_emails` (`project_id`,`to_email`,`id`);--> statement-breakpoint
CREATE INDEX `inbound_emails_by_sender` ON `inbound_emails` (`project_id`,`from_email`,`id`);--> statement-breakpoint
CREATE INDEX `inbound_emails_by_kind` ON `inbound_emails` (`project_id`,`kind`,`id`);--> statement-breakpoint
CREATE INDEX `inbound_emails_by_thread` ON `inbound_emails` (`project_id`,`thread_id`,`id`);--> statement-breakpoint
CREATE INDEX `inbound_emails_by_message_id` ON `inbound_emails` (`project_id`,`rfc_message_id`);--> statement-breakpoint
CREATE TABLE `inbound_files` (
	`sha256` text NOT NULL,
	`inbound_id` blob NOT NULL,
	PRIMARY KEY(`sha256`, `inbound_id`)
);
--> statement-breakpoint
CREATE INDEX `inbound_files_by_mail` ON `inbound_files` (`inbound_id`);--> statement-breakpoint
CREATE TABLE `inbound_routes` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`match_to` text NOT NULL,
	`action` text NOT NULL,
	`target` text,
	`priority` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `inbound_routes_by_match` ON `inbound_routes` (`project_id`,`match_to`);--> statement-breakpoint
ALTER TABLE `messages` ADD `thread_id` blob;--> statement-breakpoint
CREATE INDEX `messages_by_message_id` ON `messages` (`project_id`,`rfc_message_id`) WHERE source = 'smtp';