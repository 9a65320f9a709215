CREATE TABLE `message_files` (
	`message_id` blob NOT NULL,
	`sha256` text NOT NULL,
	PRIMARY KEY(`message_id`, `sha256`)
);
--> statement-breakpoint
CREATE INDEX `message_files_by_name` ON `message_files` (`sha256`);--> statement-breakpoint
INSERT OR IGNORE INTO `message_files` (`message_id`, `sha256`)
	SELECT m.`id`, json_extract(file.value, '$.sha256') FROM `messages` m, json_each(m.`envelope`, '$.attachments') file
	WHERE json_extract(m.`envelope`, '$.submitted') IS NULL;
--> statement-breakpoint
INSERT OR IGNORE INTO `message_files` (`message_id`, `sha256`)
	SELECT `id`, json_extract(`envelope`, '$.submitted.sha256') FROM `messages`
	WHERE json_extract(`envelope`, '$.submitted.sha256') IS NOT NULL;
