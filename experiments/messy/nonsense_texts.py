"""Texts of domains, languages and programs that no index of a team's pairs knows."""

QUESTIONS = """
what's the weather in {city}?
Will it rain in {city} tomorrow afternoon?
how long do you boil an egg
Can I freeze cooked rice?
How much flour goes into a pizza dough for four people?
What can I cook with lentils and spinach?
is sourdough healthier than white bread
how do i get red wine out of a carpet
Which vitamins are in broccoli?
my knee hurts after running, what should I do
How many hours of sleep does a teenager need?
Is it safe to take ibuprofen with coffee?
why do cats purr
How often should I walk my dog?
do goldfish sleep
When should tomatoes be planted outdoors?
how to prune roses in {season}
what eats the leaves of my basil
Who sang Bohemian Rhapsody?
how many strings does a banjo have
Can you recommend a jazz album for a rainy evening?
Who won the world cup in 1998?
What are the rules of offside?
how do you score a bowling match
Is chess older than backgammon?
Why is the sky blue?
How far away is Proxima Centauri?
what is the boiling point of ethanol
How does a vaccine work?
why do onions make you cry
Explain black holes to a five-year-old
What does my dream about falling mean?
tell me a joke about penguins
How do I ask somebody out without being awkward?
What should I wear to a wedding in {season}?
Is it rude to leave a party early?
How do I tie a bow tie?
how do i stop my bike brakes from squeaking
Which tyres are best for snow?
What does the oil warning light in my car mean?
How do I remove a scratch from a wooden floor?
what colour goes with dark green walls
How do I change the washer of a dripping tap?
can you paint over wallpaper
Best beaches near {city}?
Is the tap water in {city} drinkable?
What is a good hotel for families in {city}?
which museum in {city} is free on sundays
How do I meditate?
What is the meaning of life?
Write a poem about the moon
Who painted the Girl with a Pearl Earring?
is the sequel better than the first film
How does Hamlet end?
What is the plural of octopus?
how do you pronounce gnocchi
How do I knit a scarf in {season}?
What is the best opening move against the Sicilian?
Can horses swim?
how tall do sunflowers grow
"""

FOREIGN = """
de: Wie wird das Wetter morgen in {city}?
de: Wo finde ich eine gute Bäckerei in {city}?
de: Wie lange muss ein Ei kochen?
de: Kannst du mir ein Märchen erzählen?
de: Warum ist der Himmel blau?
de: Ich habe meinen Regenschirm im Zug vergessen
de: Welche Pflanzen vertragen viel Schatten?
de: Mein Hund frisst nicht mehr, was soll ich tun?
fr: Quel temps fera-t-il demain à {city} ?
fr: Comment fait-on une bonne ratatouille ?
fr: Pourquoi les feuilles tombent-elles en automne ?
fr: Où puis-je garer mon vélo près de la gare ?
fr: Raconte-moi une histoire de pirates
fr: Mon chat dort toute la journée
fr: Combien de temps faut-il pour apprendre le piano ?
fr: Je cherche un cadeau pour ma grand-mère
es: ¿Qué tiempo hará mañana en {city}?
es: ¿Cómo se prepara una buena tortilla de patatas?
es: ¿Por qué cantan los pájaros por la mañana?
es: Me duele la espalda desde el lunes
es: Cuéntame un chiste de médicos
es: ¿Cuánto tiempo vive una tortuga?
es: Quiero aprender a bailar salsa
pl: Jaka będzie jutro pogoda w {city}?
pl: Jak upiec sernik bez spodu?
pl: Dlaczego koty mruczą?
pl: Gdzie można tu zjeść dobre pierogi?
pl: Opowiedz mi bajkę o smoku
pl: Boli mnie głowa od samego rana
pl: Ile kosztuje bilet do kina?
it: Come si prepara un buon risotto ai funghi?
it: Che tempo fa oggi a {city}?
it: Mia nonna canta sempre in cucina
nl: Hoe laat gaat de zon vandaag onder?
nl: Waarom slapen vleermuizen ondersteboven?
pt: Como se faz um bom caldo verde?
pt: O mar hoje está muito agitado
sv: Hur lagar man köttbullar?
sv: Det snöade hela natten i {city}
cs: Kdy kvetou třešně?
tr: Yarın {city} için hava nasıl olacak?
fi: Miksi revontulet ovat vihreitä?
ru: Какая завтра погода?
ru: Расскажи мне сказку про лису
uk: Як приготувати борщ?
el: Πού μπορώ να βρω έναν καλό καφέ;
ja: 明日の天気はどうですか
zh: 猫为什么会打呼噜
ar: كيف أطبخ الأرز
hi: आज मौसम कैसा है
"""

CODE = """
def {name}(n): return n if n < 2 else {name}(n - 1) + {name}(n - 2)
for (let i = 0; i < {name}.length; i++) { console.log({name}[i]); }
#include <stdio.h> int main(void) { printf("{name}\\n"); return 0; }
public static void {name}(String[] args) throws Exception {
<div class="{name}"><span>{word}</span></div>
.{name} { margin: 0 auto; color: #{hex}; }
TypeError: Cannot read properties of undefined (reading '{name}')
Traceback (most recent call last): File "{name}.py", line {number}, in <module>
segmentation fault (core dumped) ./{name}
std::vector<int> {name}({number}, 0);
fn {name}(x: &mut Vec<u8>) -> Result<(), Error> {
let {name} = {word} |> List.map (fun x -> x * {number})
import numpy as {name}; {name}.zeros(({number}, 3))
{"{name}": [{number}, null, true], "{word}": {}}
^(?:[a-z0-9]+\\.)*{name}\\d{2,4}$
0x{hex} 0x{hex} mov eax, [ebp-{number}]
console.assert({name} !== {number}, '{word}');
@media (max-width: {number}px) { #{name} { display: none } }
{name} := make(chan int, {number})
\\begin{equation} \\sum_{i=1}^{{number}} {name}_i \\end{equation}
"""

SHORT = """
? | ... | hi | ok | hmm | yes | no | why | lol | test | asdf | hello there | thanks! | what |
huh? | maybe | :-) | !!! | x | good night | see you | never mind | whatever | oops | brb | nope
| done | same here | not sure | me too | haha | bye | wow | sorry | who knows | 42 | ¯\\_(ツ)_/¯
| 👍 | ouch | happy birthday
"""

WORDS = """
acorn anvil apricot badger ballad barnacle bassoon beetle blizzard bonfire bramble canoe canyon
caramel castle cello cinnamon clover cobweb comet coral cricket dagger dandelion dragonfly
driftwood dungeon ember falcon feather fiddle firefly flamingo fossil gargoyle geyser giraffe
glacier goblin gondola gravel hammock harpoon hazelnut heron honeycomb iceberg igloo jasmine
jigsaw kettle lagoon lantern lava lichen lighthouse lullaby magpie mammoth mango marble meadow
meteor minnow mosaic moss mustard nectar nutmeg oboe orchard otter paddle parsley peacock pebble
pelican pepper pigeon plankton pollen puddle quartz quilt rapier raven saddle saffron sapphire
seagull sequoia sparrow spindle sprout swamp tadpole tambourine thistle thunder toffee trombone
tulip tundra turnip velvet violin volcano walnut walrus waterfall whisker willow wizard yarn
gently slowly beneath purple crimson hollow frozen rusty sleepy enormous crooked tumble wander
whisper juggle sneeze yodel melt
"""

CITIES = ("Berlin", "Lisbon", "Oslo", "Kyoto", "Naples", "Reykjavik", "Nairobi", "Lima", "Hanoi")
SEASONS = ("spring", "summer", "autumn", "winter")
KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiopü", "1234567890", ",.-;:_")
