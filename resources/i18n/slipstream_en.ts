<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en">
<context>
    <name>AnswerActions</name>
    <message numerus="yes">
        <source>✓ Identical, %Ln token(s)</source>
        <translation>
            <numerusform>✓ Identical, %Ln token</numerusform>
            <numerusform>✓ Identical, %Ln tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Verifying, {0} of %Ln token(s)</source>
        <translation>
            <numerusform>Verifying, {0} of %Ln token</numerusform>
            <numerusform>Verifying, {0} of %Ln tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>BannerBar</name>
    <message numerus="yes">
        <source>%n messages</source>
        <translation>
            <numerusform>%n message</numerusform>
            <numerusform>%n messages</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>CalibrationPanel</name>
    <message numerus="yes">
        <source>checking %n draft(s) takes {0} ms</source>
        <translation>
            <numerusform>checking %n draft takes {0} ms</numerusform>
            <numerusform>checking %n drafts takes {0} ms</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Conversation</name>
    <message numerus="yes">
        <source>The first %n message(s) are no longer sent to the model.</source>
        <translation>
            <numerusform>The first message is no longer sent to the model.</numerusform>
            <numerusform>The first %n messages are no longer sent to the model.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Reply finished, %Ln token(s)</source>
        <translation>
            <numerusform>Reply finished, %Ln token</numerusform>
            <numerusform>Reply finished, %Ln tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>CostChart</name>
    <message numerus="yes">
        <source>The cost of a round at %n length(s)</source>
        <translation>
            <numerusform>The cost of a round at %n length</numerusform>
            <numerusform>The cost of a round at %n lengths</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DrafterChoice</name>
    <message numerus="yes">
        <source>{0} of %Ln draft(s) accepted here, {1} tokens per round</source>
        <translation>
            <numerusform>{0} of %Ln draft accepted here, {1} tokens per round</numerusform>
            <numerusform>{0} of %Ln drafts accepted here, {1} tokens per round</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DropTurns</name>
    <message numerus="yes">
        <source>Send the oldest %n message(s) no longer?</source>
        <translation>
            <numerusform>Send the oldest message no longer?</numerusform>
            <numerusform>Send the oldest %n messages no longer?</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>They stay in the chat. %Ln token(s) are left to send.</source>
        <translation>
            <numerusform>They stay in the chat. %Ln token is left to send.</numerusform>
            <numerusform>They stay in the chat. %Ln tokens are left to send.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FileList</name>
    <message numerus="yes">
        <source>%n file(s), {0}</source>
        <translation>
            <numerusform>%n file, {0}</numerusform>
            <numerusform>%n files, {0}</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>KeepChoice</name>
    <message numerus="yes">
        <source>%n minute(s) after the last request</source>
        <translation>
            <numerusform>%n minute after the last request</numerusform>
            <numerusform>%n minutes after the last request</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>MakeRoom</name>
    <message numerus="yes">
        <source>%n file(s), {0}, would go.</source>
        <translation>
            <numerusform>%n file, {0}, would go.</numerusform>
            <numerusform>%n files, {0}, would go.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>PairTable</name>
    <message numerus="yes">
        <source>%n min</source>
        <translation>
            <numerusform>%n min</numerusform>
            <numerusform>%n min</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RaceArm</name>
    <message numerus="yes">
        <source>%Ln token(s)</source>
        <translation>
            <numerusform>%Ln token</numerusform>
            <numerusform>%Ln tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln token(s), done</source>
        <translation>
            <numerusform>%Ln token, done</numerusform>
            <numerusform>%Ln tokens, done</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln token(s) after {0} s</source>
        <translation>
            <numerusform>%Ln token after {0} s</numerusform>
            <numerusform>%Ln tokens after {0} s</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RaceGate</name>
    <message numerus="yes">
        <source>%n client(s) are connected: results would be disturbed.</source>
        <translation>
            <numerusform>%n client is connected: results would be disturbed.</numerusform>
            <numerusform>%n clients are connected: results would be disturbed.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RaceScreen</name>
    <message numerus="yes">
        <source>It begins when %n answer(s) to clients have ended.</source>
        <translation>
            <numerusform>It begins when %n answer to a client has ended.</numerusform>
            <numerusform>It begins when %n answers to clients have ended.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Clients are paused: %n of their requests wait.</source>
        <translation>
            <numerusform>Clients are paused: %n of their requests waits.</numerusform>
            <numerusform>Clients are paused: %n of their requests wait.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RaceVerdict</name>
    <message numerus="yes">
        <source>Identical output, %Ln token(s), {0} of {0} comparisons</source>
        <translation>
            <numerusform>Identical output, %Ln token, {0} of {0} comparisons</numerusform>
            <numerusform>Identical output, %Ln tokens, {0} of {0} comparisons</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n client(s) were connected</source>
        <translation>
            <numerusform>%n client was connected</numerusform>
            <numerusform>%n clients were connected</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n other request(s) ran during the race</source>
        <translation>
            <numerusform>%n other request ran during the race</numerusform>
            <numerusform>%n other requests ran during the race</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n run(s) were repeated, as heat or power changed meanwhile</source>
        <translation>
            <numerusform>%n run was repeated, as heat or power changed meanwhile</numerusform>
            <numerusform>%n runs were repeated, as heat or power changed meanwhile</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RecoveryCard</name>
    <message numerus="yes">
        <source>Nothing has moved for %n seconds. Restart it; its answers so far are kept.</source>
        <translation>
            <numerusform>Nothing has moved for %n second. Restart it; its answers so far are kept.</numerusform>
            <numerusform>Nothing has moved for %n seconds. Restart it; its answers so far are kept.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RemovalPanel</name>
    <message numerus="yes">
        <source>%n file(s), {0}, would go.</source>
        <translation>
            <numerusform>%n file, {0}, would go.</numerusform>
            <numerusform>%n files, {0}, would go.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RequestsView</name>
    <message numerus="yes">
        <source>Prompt %Ln token(s), {0} of them from the cache</source>
        <translation>
            <numerusform>Prompt %Ln token, {0} of them from the cache</numerusform>
            <numerusform>Prompt %Ln tokens, {0} of them from the cache</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>in %Ln round(s)</source>
        <translation>
            <numerusform>in %Ln round</numerusform>
            <numerusform>in %Ln rounds</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln token(s) out {0}</source>
        <translation>
            <numerusform>%Ln token out {0}</numerusform>
            <numerusform>%Ln tokens out {0}</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The prompt did not fit: its oldest %Ln message(s) were not given to the model.</source>
        <translation>
            <numerusform>The prompt did not fit: its oldest message was not given to the model.</numerusform>
            <numerusform>The prompt did not fit: its oldest %Ln messages were not given to the model.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ServerScreen</name>
    <message numerus="yes">
        <source>Clients are paused by the race: %n request(s) wait.</source>
        <translation>
            <numerusform>Clients are paused by the race: %n request waits.</numerusform>
            <numerusform>Clients are paused by the race: %n requests wait.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Shell</name>
    <message numerus="yes">
        <source>%n clients are using the server. Quit anyway?</source>
        <translation>
            <numerusform>%n client is using the server. Quit anyway?</numerusform>
            <numerusform>%n clients are using the server. Quit anyway?</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>StatsStrip</name>
    <message numerus="yes">
        <source>%Ln token(s)</source>
        <translation>
            <numerusform>%Ln token</numerusform>
            <numerusform>%Ln tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Tokens that each of %Ln pass(es) of the model made; 1.0 is plain decoding</source>
        <translation>
            <numerusform>Tokens that the one pass of the model made; 1.0 is plain decoding</numerusform>
            <numerusform>Tokens that each of %Ln passes of the model made; 1.0 is plain decoding</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>StatusBar</name>
    <message numerus="yes">
        <source>%n client(s)</source>
        <translation>
            <numerusform>%n client</numerusform>
            <numerusform>%n clients</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n client(s), paused</source>
        <translation>
            <numerusform>%n client, paused</numerusform>
            <numerusform>%n clients, paused</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>TelemetryScreen</name>
    <message numerus="yes">
        <source>%n request(s) under way</source>
        <translation>
            <numerusform>%n request under way</numerusform>
            <numerusform>%n requests under way</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ThinkingCard</name>
    <message numerus="yes">
        <source>Thought for {0} s (%Ln token(s))</source>
        <translation>
            <numerusform>Thought for {0} s (%Ln token)</numerusform>
            <numerusform>Thought for {0} s (%Ln tokens)</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>TrainingCard</name>
    <message numerus="yes">
        <source>The drafter stays. The conversations are deleted: %n file(s) ({0}) in {1}.</source>
        <translation>
            <numerusform>The drafter stays. The conversations are deleted: %n file ({0}) in {1}.</numerusform>
            <numerusform>The drafter stays. The conversations are deleted: %n files ({0}) in {1}.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>What it has learned so far is deleted, with the conversations: %n file(s) ({0}) in {1}.</source>
        <translation>
            <numerusform>What it has learned so far is deleted, with the conversations: %n file ({0}) in {1}.</numerusform>
            <numerusform>What it has learned so far is deleted, with the conversations: %n files ({0}) in {1}.</numerusform>
        </translation>
    </message>
</context>
</TS>
