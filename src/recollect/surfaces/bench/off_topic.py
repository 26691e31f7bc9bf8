"""A hundred questions about things that a store of conversations knows nothing of: they measure the floor of search."""

from __future__ import annotations

QUERIES = tuple(
    line.strip()
    for line in """
    How does a mass spectrometer separate isotopes of uranium?
    What is the half-life of polonium-210?
    Which enzyme unwinds the DNA double helix during replication?
    Why did the Byzantine emperor debase the solidus?
    How deep is the Challenger Deep in fathoms?
    What torque do the cylinder head bolts of a Detroit Diesel 6V92 need?
    Which treaty ended the War of the Spanish Succession?
    How is a Stradivarius varnish analysed spectroscopically?
    What is the boiling point of liquid helium?
    Explain the Krebs cycle's production of oxaloacetate
    How do termites ventilate their mounds?
    Which glacier calved the iceberg that drifted past Heard Island?
    What is the tensile strength of Kevlar 49?
    How do you tune the regenerator of a Stirling engine?
    When was the Antikythera mechanism recovered by sponge divers?
    What is the Schwarzschild radius of Jupiter?
    Which ligament tears in a Lisfranc injury?
    How does a hydrophone array locate submarines?
    What year did the Hanseatic League lose its Novgorod kontor?
    How are zeolites used to crack petroleum?
    What is the gestation period of an aardvark?
    Which opcode clears the carry flag on a Z80?
    How do I set the squelch on a VHF airband transceiver?
    What is the coercivity of samarium-cobalt magnets?
    Which moons of Uranus are named after Pope's poem?
    How thick is the Antarctic ice sheet at Vostok?
    What did Euler prove about the bridges of Königsberg?
    How does a Geiger counter quench its discharge?
    Which pope crowned Charlemagne?
    What is the critical angle of a diamond?
    How is tungsten carbide sintered with cobalt?
    What is the wingspan of an Andean condor?
    How many chromosomes does a fern spore carry?
    Who commanded the Carthaginian fleet at Mylae?
    How do you bleed the hydraulics of a backhoe loader?
    What is the octane rating of avgas 100LL?
    Which mineral gives malachite its green hue?
    What voltage feeds the third rail of the London Underground?
    How does a nuclear submarine scrub carbon dioxide?
    What are the selection rules for rotational Raman spectra?
    When did the Ottoman janissaries revolt against Selim III?
    What is the solubility of barium sulphate?
    How do ballast tanks trim an oil tanker?
    Which fungus causes wheat stem rust?
    How is float glass annealed on molten tin?
    What is the albedo of Enceladus?
    Which knot do falconers use to tether a goshawk?
    What is the refractory lining of a blast furnace made of?
    How do lighthouses rotate a Fresnel lens on mercury?
    What was the displacement of the battleship Yamato?
    How does the Coriolis force deflect artillery shells?
    Which dialect of Aramaic is written in the Peshitta?
    What is the Chandrasekhar limit in solar masses?
    How do beekeepers treat varroa mites with oxalic acid?
    What gauge are the railways of Kazakhstan?
    How is quinine extracted from cinchona bark?
    Which caliph founded Baghdad's House of Wisdom?
    What is the melting point of gallium?
    How do you lap the valves of a steam locomotive?
    What is the Reynolds number of a swimming paramecium?
    Which court heard the Dred Scott case?
    How does a centrifuge enrich uranium hexafluoride?
    What is the magnetic declination in Reykjavik?
    How do echinoderms regenerate their arms?
    What was the exchange rate of the Weimar papiermark in 1923?
    Which alkaloid makes hemlock poisonous?
    How do you strip the bolt of a Mauser rifle?
    What is the Hall coefficient of germanium?
    Which Mughal emperor built the Shalimar Gardens?
    How is penicillin fermented in a bioreactor?
    Where did I moor the trawler before the cyclone?
    What did the notary say about the easement on the quarry?
    Which combine harvester belt snapped during the barley harvest?
    When did we recalibrate the seismograph in the borehole?
    What dosage of ivermectin did the shepherd give the rams?
    Which valve leaked on the brewery's glycol chiller?
    Who surveyed the boundary of the peat bog?
    What was the assay of the gold ore from shaft nine?
    When is the next dry-dock inspection of the ferry?
    Which falcon molted its primaries in the mews?
    What did the harbour pilot charge for the Suez transit?
    Where is the deed of the vineyard in Moldova kept?
    What pressure did we pump the grout into the dam?
    Which rotor blade of the helicopter was delaminated?
    What tariff applies to the shipment of anthracite?
    Who repaired the organ pipes of the cathedral at Uppsala?
    Which sluice gate jammed at the hydroelectric weir?
    When did the kiln firing of the porcelain insulators fail?
    What was the moisture of the kelp before milling?
    Which reindeer herd crossed the fjord in the blizzard?
    What did the coroner write about the mummified bishop?
    How many spindles does the linen mill run at night?
    Which gearbox ratio drives the windmill's millstone?
    What permit does the explosives magazine need?
    When was the tungsten mine's ventilation shaft sunk?
    Which tugboat towed the caisson to the pier?
    What is the bore of the church's carillon clapper bolts?
    Who forged the export certificate for the caviar?
    Which apprentice polished the telescope's parabolic mirror?
    How much fodder did the llamas eat at the monastery?
    """.splitlines()
    if line.strip()
)
